#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that programs which are compared run by turns, never at once. Usage: compare_turns_test.py FOLDER_OF_COMPARE
[RMARUN BENCHMARK]"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import compare_turns

BENCHMARK = [sys.argv.pop(1) for _ in sys.argv[1:]]
SECONDS = 30

# It notes when its runs begin and end. A child of it notes all the time that it runs: a rank that waits by spinning.
PROGRAM = """
import os, subprocess, sys
name, folder, points = sys.argv[1], sys.argv[2], sys.argv[3]
spin = '''
import os, sys
file, n = os.open(sys.argv[1], os.O_RDWR), 0
while True:
    n += 1
    os.pwrite(file, b'%d' % n, 0)
'''
mine, others = [os.path.join(folder, f"spins-{it}") for it in (name, "b" if name == "a" else "a")]
open(mine, "w").close()
child = subprocess.Popen([sys.executable, "-c", spin, mine])
def others_spins():
    return open(others).read() if os.path.exists(others) else ""
with open(os.path.join(folder, "log"), "a", buffering=1) as log:
    for point in points:
        print("turn", point, flush=True)
        sys.stdin.readline()
        before = others_spins()
        for _ in range(200000): pass
        same = before == others_spins()
        log.write(f"{name}{point}{'' if same else ' not alone'}\\n")
child.kill()
"""
FAILING = "import sys; print('turn', flush=True); sys.stdin.readline(); sys.exit('out of luck')"
SILENT = "import time; time.sleep(1000)"


def python(source, *words):
    return [sys.executable, "-c", source, *map(str, words)]


def play(*commands, seconds=SECONDS, leader=None):
    return compare_turns.play(commands, dict(os.environ), seconds, leader)


class Turns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def program(self, name, points):
        return python(PROGRAM, name, self.folder.name, points)

    def log(self):
        with open(os.path.join(self.folder.name, "log"), encoding="utf-8") as file:
            return file.read().split("\n")[:-1]

    def test_runs_follow_each_other_and_nobody_else_runs_meanwhile(self):
        self.assertEqual(play(self.program("a", "0123"), self.program("b", "0123")), [(0, ""), (0, "")])
        self.assertEqual(self.log(), [f"{name}{i}" for i in range(4) for name in "ab"])

    def test_who_has_more_runs_goes_on_alone(self):
        self.assertEqual(play(self.program("a", "0"), self.program("b", "012")), [(0, ""), (0, "")])
        self.assertEqual(self.log(), ["a0", "b0", "b1", "b2"])

    def test_what_only_the_leader_measures_it_measures_alone(self):
        play(self.program("a", "1123"), self.program("b", "113"), leader=0)
        self.assertEqual(self.log(), ["a1", "b1", "a1", "b1", "a2", "a3", "b3"])

    def test_the_leader_need_not_be_the_first(self):
        play(self.program("a", "113"), self.program("b", "1123"), leader=1)
        self.assertEqual(self.log(), ["a1", "b1", "a1", "b1", "b2", "a3", "b3"])

    def test_what_the_leader_never_comes_to_is_measured_after_it(self):
        play(self.program("a", "12"), self.program("b", "132"), self.program("c", "34"), leader=0)
        self.assertEqual(self.log(), ["a1", "b1", "a2", "b3", "c3", "b2", "c4"])

    def test_one_that_fails_says_why_and_holds_nobody_up(self):
        failed, other = play(python(FAILING), self.program("b", "01"))
        self.assertEqual((failed, other), ((1, "out of luck\n"), (0, "")))
        self.assertEqual(self.log(), ["b0", "b1"])

    def test_one_that_never_has_a_turn_is_ended(self):
        self.assertEqual(play(python(SILENT), seconds=1), [(-9, compare_turns.TOO_LATE)])

    def test_a_program_that_is_not_there_leaves_nobody_behind(self):
        before = compare_turns.descendants(os.getpid())
        with self.assertRaises(OSError):
            play(self.program("a", "01"), ["/nowhere/program"])
        self.assertEqual(compare_turns.descendants(os.getpid()), before)

    @unittest.skipUnless(BENCHMARK, "no benchmarks were built")
    def test_two_jobs_of_a_benchmark(self):
        launcher, program = BENCHMARK
        outs = [os.path.join(self.folder.name, name) for name in "ab"]
        ends = play(*([launcher, "-n", "2", program, "--metric", "put_flush|barrier", "--runs", "3", "--run-ms", "1",
                       "--json", out] for out in outs))
        self.assertEqual([status for status, _ in ends], [0, 0], ends)
        for out in outs:
            with open(out, encoding="utf-8") as file:
                points = json.load(file)["points"]
            self.assertEqual([len(point["values"]) for point in points], [3] * len(points))
            self.assertGreater(len(points), 0)

    @unittest.skipUnless(BENCHMARK, "no benchmarks were built")
    def test_a_benchmark_says_before_each_run_that_it_waits(self):
        launcher, program = BENCHMARK
        done = subprocess.run([launcher, "-n", "2", program, "--metric", "put_flush", "--runs", "4", "--run-ms", "1",
                               "--in-turn"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.stdout.split("\n").count("turn put_flush/8"), 4, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
