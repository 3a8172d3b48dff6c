#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ctest_summary_test.py CTEST_SUMMARY.py: nothing that failed or never ran is taken for skipped or passed."""
import os
import subprocess
import sys
import tempfile
import unittest

SUMMARY = ""
RUN = """<testsuite>
<testcase name="a" status="run"><system-out>[skip] one case: no device
[skip] one case: no device
</system-out></testcase>
<testcase name="b" status="fail"><failure message=""/><system-out>what

it was
</system-out></testcase>
<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="e" status="disabled"/>
</testsuite>
"""


class Summary(unittest.TestCase):
    def run_on(self, *texts, options=()):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, str(index)) for index in range(len(texts))]
            for path, text in zip(paths, texts):
                if text is not None:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
            return subprocess.run([sys.executable, SUMMARY, *options, *paths],
                                  capture_output=True, text=True, check=True).stdout

    def test_counts(self):
        self.assertEqual(self.run_on(RUN), "1 3 1\n")
        self.assertEqual(self.run_on(RUN, RUN), "2 6 2\n")
        self.assertEqual(self.run_on(), "0 0 0\n")

    def test_unreadable_is_a_failure(self):
        self.assertEqual(self.run_on(RUN, None), "1 4 1\n")
        self.assertEqual(self.run_on("<testsuite>"), "0 1 0\n")

    def test_reasons(self):
        self.assertEqual(self.run_on(RUN, options=["--reasons"]), "a: [skip] one case: no device\nc: skipped\n")

    def test_failures(self):
        self.assertEqual(self.run_on(RUN, options=["--failures"]),
                         "failed: b: what\nfailed: b: it was\n"
                         "failed: d: it printed nothing\nfailed: e: it printed nothing\n")


if __name__ == "__main__":
    SUMMARY = sys.argv.pop()
    unittest.main()
