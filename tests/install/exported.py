#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exported.py ARCHIVE LIST [--write]: what a shared library of the archive's objects exports, beside templates and the
functions of rma::detail that inlined calls go to, is what LIST names, and at most 200 names."""
import re
import subprocess
import sys

MOST = 200


def exported(archive):
    """Demangled names of strong symbols that are visible outside."""
    text = subprocess.run(["readelf", "-sW", archive], stdout=subprocess.PIPE, text=True, check=True).stdout
    mangled = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 8 and words[4] == "GLOBAL" and words[5] in ("DEFAULT", "PROTECTED") and words[6] != "UND":
            mangled.add(words[7])
    names = subprocess.run(["c++filt"], input="\n".join(sorted(mangled)), stdout=subprocess.PIPE, text=True,
                           check=True).stdout.splitlines()
    return set(names)


def main():
    archive, path = sys.argv[1:3]
    names = exported(archive)
    of_detail = re.compile(r"((vtable|typeinfo|typeinfo name|guard variable) for )?rma::detail::")
    inner = {name for name in names if of_detail.match(name)}
    strange = {name for name in names if "rma::" not in name}
    found = sorted(names - inner - strange)
    for name in sorted(strange):
        print(f"exported.py: {name} is exported, and is not the library's")
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in found))
    with open(path, encoding="utf-8") as file:
        wanted = file.read().splitlines()
    for name in sorted(set(found) - set(wanted)):
        print(f"exported.py: {name} is exported, and the list does not have it")
    for name in sorted(set(wanted) - set(found)):
        print(f"exported.py: {name} is in the list, and not exported")
    print(f"exported.py: {len(found)} symbols, {len(inner)} of rma::detail for inlined calls")
    return 0 if found == wanted and len(found) <= MOST and not strange else 1


if __name__ == "__main__":
    sys.exit(main())
