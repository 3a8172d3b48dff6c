#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""error_texts_test.py ROOT: each text of src/api/raise.cpp stands in a test, which wants to read it.

Goal: no error of a window's call has a line that nobody has seen, and no word of one changes unseen.
Method: each piece of a text between its values must be in a string of tests/, whole; most are in the table of
tests/conformance/error_text_cases.cpp. NOT_TESTED lists the others, as they are.
Break: change a word of a text there or here.
"""
import os
import re
import sys

PIECE_LEAST = 9
# Texts that no call leads to on the machines of the tests, or whose tests look at the status alone.
NOT_TESTED = {
    "has dropped or freed it; let all finish before one does, by a barrier": "see dropped_window_test",
    "see rma::status": "the default of a switch over all codes",
    "another thread is in start()": "needs a thread in the middle of a call that waits for nobody",
    "compare_and_swap needs an integer type, and": "the compiler refuses others; _as forms return a status",
    "are behind that place": "of a range that ends within what is attached",
    "this window cannot do it": "the default of a status that no call gives",
    "close it by fence(rma::no_succeed) first": "needs RMA_CHECK=1, see used_fence_epochs",
    "the network device updates integers of 8 bytes at most; use another Hints::accumulate":
        "of a type of 16 bytes, by an adapter with atomics",
    "is on another node and no network fabric connects the two; run all ranks on one node":
        "every node of the tests has a network",
    "an epoch of this rank could not be closed at the end of its scope; free the window":
        "needs a failure in the unlock at a scope's end",
    "the job is being ended": "its processes are ended meanwhile",
    "the window is freed, but not all that was under way came to a good end": "needs a failure in free() itself",
}
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
    with open(os.path.join(root, "src", "api", "raise.cpp"), encoding="utf-8") as file:
        wanted = sorted(set(pieces(joined(file.read()))))
    seen = []
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name.endswith((".cpp", ".hpp", ".py", ".sh")) and name != os.path.basename(__file__):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    seen.append(joined(file.read()))
    text = "\n".join(seen)
    missing = [piece for piece in wanted if piece not in text and piece not in NOT_TESTED]
    stale = [piece for piece in NOT_TESTED if piece not in wanted or piece in text]
    for piece in missing:
        print(f"no test has this text of src/api/raise.cpp: {piece}")
    for piece in stale:
        print(f"{piece}: is tested, or is no text of src/api/raise.cpp any more")
    print(f"{len(wanted)} texts, {len(missing)} without a test")
    return 1 if missing or stale or len(wanted) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
