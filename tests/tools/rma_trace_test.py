#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rma_trace_test.py RMA-TRACE: one file of several traces, whole or cut off."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""


def event(rank, name):
    return json.dumps({"name": name, "ph": "X", "pid": rank, "tid": 1, "ts": 1.5, "dur": 2})


class Merge(unittest.TestCase):
    def merged(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            whole, cut, out = (os.path.join(folder, name) for name in ("0", "1", "all"))
            with open(whole, "w", encoding="utf-8") as file:
                file.write("[\n" + event(0, "put") + ",\n" + event(0, "barrier") + "\n]\n")
            with open(cut, "w", encoding="utf-8") as file:
                file.write("[\n" + event(1, "put") + ",\n" + event(1, "get")[:20])
            done = subprocess.run([sys.executable, PROGRAM, *options, out, whole, cut], check=False)
            self.assertEqual(done.returncode, 0)
            with open(out, encoding="utf-8") as file:
                return [(each["pid"], each["name"]) for each in json.load(file)]

    def test_all(self):
        self.assertEqual(self.merged(), [(0, "put"), (0, "barrier"), (1, "put")])

    def test_some(self):
        self.assertEqual(self.merged("--calls", "put"), [(0, "put"), (1, "put")])
        self.assertEqual(self.merged("--ranks", "1"), [(1, "put")])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
