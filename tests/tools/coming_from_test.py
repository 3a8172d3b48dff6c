#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coming_from_test.py ROOT: what docs/coming-from.md says is here, is.

Goal: no row of the tables names a call that the public headers do not have.
Method: every word in code marks of a right column must be a word of include/rma, or a setting of the library.
Break: write a name that is not there into a table.
"""
import os
import re
import sys

KNOWN = {"argc", "argv", "rt", "auto", "win", "value", "mpirun", "srun", "rmarun"}  # words of the program itself


def words_of(folder, suffixes):
    words = set()
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(suffixes):
                with open(os.path.join(path, name), encoding="utf-8") as file:
                    words.update(re.findall(r"\w+", file.read()))
    return words


def rows_of(document):
    """Line number and last column of every row, headings of tables left out."""
    with open(document, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        below = lines[number] if number < len(lines) else ""
        if line.startswith("| ") and not below.startswith("|---"):
            yield number, line.rstrip(" |").rsplit(" | ", 1)[-1]


def main():
    root = sys.argv[1]
    document = os.path.join(root, "docs", "coming-from.md")
    known = KNOWN | words_of(os.path.join(root, "include", "rma"), ".hpp")
    known |= words_of(os.path.join(root, "src", "core"), "settings.cpp")
    rows = list(rows_of(document))
    missing = [(number, word) for number, text in rows for code in re.findall(r"`([^`]+)`", text)
               for word in re.findall(r"[A-Za-z_]\w*", code) if word not in known]
    for number, word in missing:
        print(f"{document}:{number}: {word} is in no public header")
    print(f"{len(rows)} rows, {len(missing)} names that are not there")
    return 1 if missing or len(rows) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
