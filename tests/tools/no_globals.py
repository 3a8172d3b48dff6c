#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""no_globals.py LIBRARY.a ALLOWED.txt: fails if an object of the library has mutable static or thread-local data.

The library keeps all state in a Runtime, of which several may live in one process. Looked at are the writable
sections (.data, .bss, .tdata, .tbss and their per-symbol forms); .data.rel.ro is constant after loading.
ALLOWED.txt has one regular expression per line, matched against whole demangled symbol names; `#` starts a comment.
"""
import re
import subprocess
import sys

WRITABLE = re.compile(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)(\..*)?|COMMON|\*COM\*")
# A pointer to the personality routine, which g++ -fPIE places in .data.rel.local.
ALWAYS_ALLOWED = [r"DW\.ref\.__gxx_personality_v0"]
# objdump -t: value, seven flag characters, section, size, visibility, name
SYMBOL = re.compile(r"^[0-9a-f]+ (.{7}) (\S+)\t([0-9a-f]+)\s+(?:\.hidden |\.protected |\.internal )?(.*)$")
MEMBER = re.compile(r"^(\S+):\s+file format ")


def allowed_patterns(path):
    with open(path, encoding="utf-8") as lines:
        rules = [line.split("#")[0].strip() for line in lines]
    return [re.compile(rule) for rule in ALWAYS_ALLOWED + rules if rule]


def mutable_symbols(library):
    """Yields (object, section, bytes, symbol) of everything that can be written to at run time."""
    listing = subprocess.run(["objdump", "-t", "-C", library], check=True, capture_output=True, text=True).stdout
    member = library
    for line in listing.splitlines():
        if new_member := MEMBER.match(line):
            member = new_member.group(1)
        elif symbol := SYMBOL.match(line):
            flags, section, size, name = symbol.groups()
            is_section_or_file = "d" in flags or "f" in flags
            if WRITABLE.fullmatch(section) and not is_section_or_file and int(size, 16) > 0:
                yield member, section, int(size, 16), name


def main():
    library, allowed_file = sys.argv[1:]
    allowed = allowed_patterns(allowed_file)
    findings = [found for found in mutable_symbols(library)
                if not any(rule.fullmatch(found[3]) for rule in allowed)]
    for member, section, size, name in findings:
        print(f"{member}: {section}: {size} bytes: {name}")
    print(f"no_globals: {len(findings)} mutable globals in {library}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
