#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""error_texts_test.py ROOT: each text of src/api/raise.cpp and wrong_epoch.cpp stands in a test, which wants
to read it.

Goal: no error of a window's call has a line that nobody has seen, and no word of one changes unseen.
Method: each piece of a text between its values must be in a string of tests/, whole; most are in the table of
tests/conformance/error_text_cases.cpp; tests/runtime/raise_test.cpp has those that no call of one rank leads to.
Break: change a word of a text there or here.
"""
import os
import re
import sys

SOURCES = ("raise.cpp", "wrong_epoch.cpp")
PIECE_LEAST = 9
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def joined(code):
    """The code without comments, and with literals that stand one behind the other as one."""
    code = re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)
    return re.sub(r'"\s*\n\s*"', "", code)


def pieces(code):
    """What stands between the values of each text, where it has several words."""
    for text in LITERAL.findall("\n".join(line for line in code.splitlines() if not line.startswith("#include"))):
        for piece in re.split(r"\{[^}]*\}", text):
            piece = piece.strip(" ,:;(")
            if " " in piece and len(piece) >= PIECE_LEAST:
                yield piece


def main():
    root = sys.argv[1]
    wanted = set()
    for name in SOURCES:
        with open(os.path.join(root, "src", "api", name), encoding="utf-8") as file:
            wanted.update(pieces(joined(file.read())))
    wanted = sorted(wanted)
    seen = []
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name.endswith((".cpp", ".hpp", ".py", ".sh")) and name != os.path.basename(__file__):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    seen.append(joined(file.read()))
    text = "\n".join(seen)
    missing = [piece for piece in wanted if piece not in text]
    for piece in missing:
        print(f"no test has this text of src/api: {piece}")
    print(f"{len(wanted)} texts, {len(missing)} without a test")
    return 1 if missing or len(wanted) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
