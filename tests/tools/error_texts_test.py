#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""error_texts_test.py ROOT: each text of src/api/raise.cpp stands in a test, which wants to read it.

Goal: no error of a window's call has a line that nobody has seen.
Method: of the longest piece of each text without a value in it three words in a row must be in a string of tests/; most
are there as a whole, in the table of tests/conformance/error_text_cases.cpp.
Break: change a text there or here.
"""
import os
import re
import sys

PIECE_LEAST = 9
WORDS = 3
# Texts that no call leads to on the machines of the tests, or that have a part of a sentence only.
NOT_TESTED = {
    "has dropped or freed it; let all finish before one does, by a barrier": "see dropped_window_test",
    "see rma::status": "the default of a switch over all codes",
    "another thread is in start()": "needs a thread in the middle of a call that waits for nobody",
    "compare_and_swap needs an integer type, and": "the compiler refuses others; _as forms return a status",
    "are behind that place": "of a range that ends within what is attached",
    "this window cannot do it": "the default of a status that no call gives",
    "close it by fence(rma::no_succeed) first": "needs RMA_CHECK=1, see used_fence_epochs",
}
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def joined(code):
    """The code without comments, and with literals that stand one behind the other as one."""
    code = re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)
    return re.sub(r'"\s*\n\s*"', "", code)


def pieces(code):
    """The longest piece without a value of each text of several words."""
    for text in LITERAL.findall("\n".join(line for line in code.splitlines() if not line.startswith("#include"))):
        longest = max(re.split(r"\{[^}]*\}", text), key=len).strip(" ,;(")
        if " " in longest and len(longest) >= PIECE_LEAST:
            yield longest


def is_in(piece, text):
    words = piece.split()
    return any(" ".join(words[at:at + WORDS]) in text for at in range(max(1, len(words) - WORDS + 1)))


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "src", "api", "raise.cpp"), encoding="utf-8") as file:
        wanted = sorted(set(pieces(joined(file.read()))))
    seen = []
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name.endswith((".cpp", ".hpp", ".py", ".sh")) and name != os.path.basename(__file__):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    seen.append(joined(file.read()))
    text = "\n".join(seen)
    missing = [piece for piece in wanted if not is_in(piece, text) and piece not in NOT_TESTED]
    stale = [piece for piece in NOT_TESTED if piece not in wanted or is_in(piece, text)]
    for piece in missing:
        print(f"no test has this text of src/api/raise.cpp: {piece}")
    for piece in stale:
        print(f"{piece}: is tested, or is no text of src/api/raise.cpp any more")
    print(f"{len(wanted)} texts, {len(missing)} without a test")
    return 1 if missing or stale or len(wanted) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
