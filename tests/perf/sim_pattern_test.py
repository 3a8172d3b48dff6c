#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sim_pattern_test.py PROGRAM: what perf/sim_pattern refuses, and what it answers."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else ""


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=50, check=False)


class Refusals(unittest.TestCase):
    def refused(self, expected, *arguments, lines=1):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), lines, done.stderr)
        self.assertRegex(done.stderr, "^sim_pattern: .*" + expected)

    def test_pattern(self):
        self.refused("no pattern 'halos'; there are neighbors, .*trace FILE", "halos")

    def test_preset(self):
        self.refused("susukit", "ring", "--params", "susukit")

    def test_parameter(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "my.params")
            with open(path, "w", encoding="utf-8") as file:
                file.write("base = susukita\ndma_sped = 3 GB/s\n")
            self.refused(r"my.params:2: unknown parameter 'dma_sped'; did you mean dma_speed\?",
                         "ring", "--params", path)

    def test_topology(self):
        self.refused("room for 4 nodes, 5 are needed", "ring", "--ranks", "5", "--topology", "torus:2x2")
        self.refused("is not one of", "ring", "--topology", "moebius")

    def test_options(self):
        self.refused("--ranks", "ring", "--ranks", "0")
        self.refused("--rings", "ring", "--rings", "2")
        self.refused("-1 bytes are not possible", "ring", "--bytes", "-1")

    def test_deadlock(self):
        self.refused("deadlock.*", "ring", "--ranks", "3", "--wait-first", lines=4)

    def test_trace(self):
        self.refused("trace needs a file", "trace")
        self.refused("only trace takes a file", "ring", "some.trace")
        self.refused("none.trace: cannot be read", "trace", "none.trace")
        self.refused("cannot be read", "trace", "/")
        for line, expected in (("0 1 8", "tag is missing"), ("0 2 8 0", "dest 2: there are only 2 ranks"),
                               ("0 1 -1 0", "bytes -1 is below zero"), ("0 1 a 0", "bytes 'a' is not a whole number"),
                               ("0 1 8 0 7", "'7' is one column too many")):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "x.trace")
                with open(path, "w", encoding="utf-8") as file:
                    file.write("# recorded\n" + line + "\n")
                self.refused("x.trace:2: " + expected, "trace", path, "--ranks", "2")


class Answers(unittest.TestCase):
    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.trace")
            with open(path, "w", encoding="utf-8") as file:
                file.write("0 1 2048 0\n1 0 2048 3\n")
            done = run("trace", path, "--ranks", "2", "--params", "susukita")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("bytes 4096 ", done.stdout)

    def test_random_ring_gives_back_the_dma_speed(self):
        # The paper's fit: two ranks of one node put 2 MB to each other.
        done = run("random-ring", "--ranks", "2", "--ranks-per-node", "2", "--bytes", "2000000", "--params", "susukita")
        self.assertAlmostEqual(float(re.search(r" gbs ([0-9.]+)", done.stdout).group(1)), 2.8, delta=0.001)

    def test_json_and_repetition(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a", "b")]
            for path in paths:
                done = run("random-ring", "--ranks", "6", "--seed", "5", "--messages", "3", "--json", path)
                self.assertEqual(done.returncode, 0, done.stderr)
            texts = []
            for path in paths:
                with open(path, encoding="utf-8") as file:
                    texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        result = json.loads(texts[0])
        self.assertEqual(result["network"]["count"], 36)
        self.assertEqual(len(result["ranks"]), 6)
        self.assertEqual(result["time_ps"], max(rank["end_ps"] for rank in result["ranks"]))


if __name__ == "__main__":
    if not os.access(PROGRAM, os.X_OK):
        print(f"{PROGRAM} is not built")
        sys.exit(77)
    unittest.main()
