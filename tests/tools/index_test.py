#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""index_test.py ROOT: the index of docs/architecture.md leads to what it names.

Goal: each identifier of a row's first column is defined or used in one of the files of its last column.
Method: a file name without a folder is in the folder of the one before it; a folder stands for all its files.
Break: rename an identifier in the index.
"""
import os
import re
import sys

IDENTIFIER = re.compile(r"[a-z]\w*_\w+")  # plain words are English


def rows_of(document):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    for line in text[text.index("\n## Index"):].splitlines():
        if line.startswith("| ") and not line.startswith("| word |"):
            columns = line.strip("| ").split(" | ")
            yield columns[0], columns[-1]


def text_of(root, path):
    full = os.path.join(root, path)
    files = [full] if os.path.isfile(full) else [os.path.join(folder, name) for folder, _, names in os.walk(full)
                                                 for name in names if name.endswith((".hpp", ".cpp"))]
    text = ""
    for each in files:
        with open(each, encoding="utf-8") as file:
            text += file.read()
    return text


def files_of(column):
    folder = ""
    for path in re.findall(r"[\w./-]+", column):
        if "/" in path:
            folder = os.path.dirname(path)
            yield path
        elif "." in path:
            yield os.path.join(folder, path)


def main():
    root = sys.argv[1]
    document = os.path.join(root, "docs", "architecture.md")
    rows, missing = 0, 0
    for names, column in rows_of(document):
        rows += 1
        known = set(re.findall(r"\w+", " ".join(text_of(root, path) for path in files_of(column))))
        for name in IDENTIFIER.findall(names):
            if name not in known:
                missing += 1
                print(f"{document}: {name} is not in {column}")
    print(f"{rows} rows, {missing} names that are not there")
    return 1 if missing or rows < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
