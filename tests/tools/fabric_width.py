#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabric_width.py ROOT: checks that the interface of the fabrics stays narrow. Prints each member of
`fabric::capabilities` with the files above the fabrics that read it; a member without a reader fails, and so does a
`fabric::network` of more than CALLS_MAX virtual calls."""
import os
import re
import sys

CALLS_MAX = 12
MEMBER = re.compile(r"^  [\w:<>]+ (\w+)(?: = [^;]+|\{\})?;", re.MULTILINE)
CALL = re.compile(r"^  (?:\[\[nodiscard\]\] )?virtual [^;~]*?(\w+)\(", re.MULTILINE)
VARIABLE = re.compile(r"\bcapabilities&? (\w+)")


def body(text, head):
    """What stands between `head` and the end of that type."""
    begin = text.index(head)
    return text[begin:text.index("\n};", begin)]


def sources_above(root):
    """(path, text) of each source above the fabrics."""
    for folder, _, names in os.walk(os.path.join(root, "src")):
        path = os.path.relpath(folder, root)
        if path.startswith(os.path.join("src", "fabric")):
            continue
        for name in sorted(names):
            if name.endswith((".cpp", ".hpp")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield os.path.join(path, name), file.read()


def readers(member, sources):
    """The files that read it from a variable which they declare as capabilities, or from `caps()`."""
    found = []
    for path, text in sources:
        holders = "|".join(["caps_", "caps", *set(VARIABLE.findall(text))])
        if re.search(rf"\b(?:caps\(\)|{holders})\.{member}\b", text):
            found.append(path)
    return found


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "src/fabric/fabric.hpp"), encoding="utf-8") as file:
        interface = file.read()
    sources = list(sources_above(root))
    failed = False
    members = MEMBER.findall(body(interface, "struct capabilities {"))
    for member in members:
        found = readers(member, sources)
        print(f"{member}: {', '.join(found) or 'nobody reads it above the fabrics: delete it'}")
        failed |= not found
    calls = CALL.findall(body(interface, "class network {"))
    print(f"{len(calls)} calls of network: {', '.join(calls)}")
    failed |= len(calls) > CALLS_MAX or not members or not calls
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
