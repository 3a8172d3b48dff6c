#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ctest_summary.py FILE.xml...: adds up what `ctest --output-junit` wrote, as `passed failed skipped` numbers.

A test counts as skipped only if it said so itself (exit status 77, or the phrase that marks a skip); one that was not
run for another reason, such as a missing program or a failed fixture, counts as failed, and so does a file that is
missing or unreadable. With --reasons: prints a line for each skipped test and each `[skip]` line of a test instead.
With --failures: prints the end of what each failed test printed.
"""
import sys
import xml.etree.ElementTree as ElementTree

SAID_SO = ("SKIP_RETURN_CODE", "SKIP_REGULAR_EXPRESSION")
LINES_OF_FAILURE = 15


def outcome(case):
    """'passed', 'failed' or 'skipped'."""
    skipped = case.find("skipped")
    if skipped is not None:
        return "skipped" if skipped.get("message", "").startswith(SAID_SO) else "failed"
    return "passed" if case.get("status") == "run" else "failed"


def reasons(case):
    """What a test printed about test cases that it left out."""
    output = case.findtext("system-out") or ""
    said = [line.strip() for line in output.splitlines() if "[skip]" in line]
    return list(dict.fromkeys(said)) or ([""] if outcome(case) == "skipped" else [])


def last_words(case):
    """The end of what a test printed, without empty lines."""
    output = case.findtext("system-out") or "it printed nothing"
    return [line.rstrip() for line in output.splitlines() if line.strip()][-LINES_OF_FAILURE:]


def cases_of(path):
    """The test cases of one file, or None if there is no telling."""
    try:
        return list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None


def main():
    wants = sys.argv[1] if sys.argv[1:2] in (["--reasons"], ["--failures"]) else None
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for path in sys.argv[2 if wants else 1:]:
        cases = cases_of(path)
        if cases is None:
            count["failed"] += 1
            continue
        for case in cases:
            count[outcome(case)] += 1
            if wants == "--reasons":
                for reason in reasons(case):
                    print(f"{case.get('name')}: {reason or 'skipped'}")
            elif wants == "--failures" and outcome(case) == "failed":
                for line in last_words(case):
                    print(f"failed: {case.get('name')}: {line}")
    if not wants:
        print(count["passed"], count["failed"], count["skipped"])


if __name__ == "__main__":
    main()
