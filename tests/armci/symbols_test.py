#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""symbols_test.py ARCHIVE [--needs ARCHIVE...] [--headers HEADER...] [--except NAME...]: every name of ARMCI that those
archives leave undefined, and every function that those headers declare, is defined in ARCHIVE."""
import argparse
import re
import subprocess
import sys

ARMCI = re.compile(r"^(P?ARMCIX?_|p?armci_)")
DECLARED = re.compile(r"\b(P?ARMCIX?_\w+|p?armci_\w+)\s*\(")


def symbols(archive):
    """Names that it defines, and those that it needs and does not define."""
    listing = subprocess.run(["nm", "-P", "-g", archive], capture_output=True, text=True, check=True).stdout
    defined, undefined = set(), set()
    for line in listing.splitlines():
        words = line.split()
        if len(words) < 2:
            continue
        (undefined if words[1] in "Uw" else defined).add(words[0])
    return defined, undefined - defined


def declared(header):
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", " ", file.read(), flags=re.DOTALL | re.MULTILINE)
    return set(DECLARED.findall(text))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive")
    parser.add_argument("--needs", nargs="*", default=[])
    parser.add_argument("--headers", nargs="*", default=[])
    parser.add_argument("--except", nargs="*", default=[], dest="exempt")
    given = parser.parse_args()
    defined, _ = symbols(given.archive)
    wanted = set()
    for archive in given.needs:
        wanted |= {name for name in symbols(archive)[1] if ARMCI.match(name)}
    for header in given.headers:
        wanted |= declared(header)
    missing = sorted(wanted - defined - set(given.exempt))
    if not wanted:
        print("nothing was asked for: are these the archives and headers?")
        return 1
    if missing:
        print("not defined:", *missing)
        return 1
    print(f"{len(wanted)} names, all defined")
    return 0


if __name__ == "__main__":
    sys.exit(main())
