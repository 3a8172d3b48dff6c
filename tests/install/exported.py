#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exported.py ARCHIVE HEADERS LIST INLINED [--write]: what a shared library of the archive's objects exports beside
templates is what the two lists name.

INLINED has the functions of rma::detail that inline code of the public HEADERS calls: each is called there, or it does
not belong to the library's interface and must be hidden. LIST has everything else, at most 200 names. --write writes
both. Break: declare a private class of rma::detail behind the `push(default)` of a public header.
"""
import glob
import os
import re
import subprocess
import sys

MOST = 200
OF_DETAIL = re.compile(r"((vtable|typeinfo|typeinfo name|guard variable) for )?rma::detail::")


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


class Headers:
    """The code of the public headers, without comments."""

    def __init__(self, folder):
        def text_of(pattern):
            paths = glob.glob(os.path.join(folder, pattern), recursive=True)
            return re.sub(r"//.*", "", "\n".join(open(path, encoding="utf-8").read() for path in sorted(paths)))
        self.all = text_of("**/*.hpp")
        self.detail = text_of("detail/*.hpp")

    def call(self, symbol):
        """True if inline code calls this function, or uses this object, of rma::detail."""
        *scopes, name = symbol.split("(")[0].replace("[abi:cxx11]", "").removeprefix("rma::detail::").split("::")
        if scopes and re.search(rf"\bdetail::{scopes[0]}\b", self.all) is None:
            return False  # no public header has an object of that class
        if scopes and name == scopes[-1]:
            return f"make_unique<detail::{name}>(" in self.all
        if name.startswith("~"):
            return True  # with the object that it is a member of
        if scopes:
            return re.search(rf"(->|\.){name}\(", self.all) is not None
        qualified = re.search(rf"\bdetail::{name}\b", self.all) is not None
        return qualified or len(re.findall(rf"\b{name}\(", self.detail)) >= 2  # the declaration is one


def compare(path, found, write):
    """True if the file lists what was found."""
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in found))
    with open(path, encoding="utf-8") as file:
        wanted = file.read().splitlines()
    for name in sorted(set(found) - set(wanted)):
        print(f"exported.py: {name} is exported, and {os.path.basename(path)} does not have it")
    for name in sorted(set(wanted) - set(found)):
        print(f"exported.py: {os.path.basename(path)} has {name}, which is not exported")
    return found == wanted


def main():
    archive, folder, path, inlined_path = sys.argv[1:5]
    names, headers = exported(archive), Headers(folder)
    strange = {name for name in names if "rma::" not in name}
    for name in sorted(strange):
        print(f"exported.py: {name} is exported, and is not the library's")
    inlined = sorted(name for name in names if OF_DETAIL.match(name) and headers.call(name))
    found = sorted(names - set(inlined) - strange)
    write = "--write" in sys.argv
    same = [compare(path, found, write), compare(inlined_path, inlined, write)]
    print(f"exported.py: {len(found)} symbols, and {len(inlined)} that inlined calls need")
    return 0 if all(same) and len(found) <= MOST and not strange else 1


if __name__ == "__main__":
    sys.exit(main())
