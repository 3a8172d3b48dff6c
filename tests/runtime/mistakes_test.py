#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mistake in a configuration ends a program with one line and status 2, however it was started.

usage: mistakes_test.py PROGRAM RMARUN RMA-SIM|none
"""
import os
import subprocess
import sys
import unittest

PROGRAM, RMARUN, SIMULATOR = sys.argv[1:4]

# Settings, what the line says, and whether a simulated job makes the same mistake.
MISTAKES = [
    ({"RMA_LOK": "1"}, "RMA_LOK (environment) is not a setting; did you mean", True),
    ({"RMA_LOCK": "foo"}, "RMA_LOCK=foo (environment) is not a value of this setting", True),
    ({"RMA_SPIN_US": "x"}, "RMA_SPIN_US=x (environment) is not a value of this setting", True),
    ({"RMA_TRACE": "/no/such/x"}, "RMA_TRACE=/no/such/x: cannot write /no/such/x.", True),
    ({"RMA_FABRIC": "verbs", "RMA_DEVICE": "no_such_device"}, "no_such_device", False),
    ({"RMA_FABRIC": "sim"}, "RMA_FABRIC=sim: this job is not simulated", False),
]


def run(*command, **settings):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RMA_")}
    return subprocess.run(command, env=clean | settings, capture_output=True, text=True, timeout=60)


class Mistakes(unittest.TestCase):
    def is_one_line(self, done, said):
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("rma: "), done.stderr)
        self.assertIn(said, done.stderr)

    def test_alone(self):
        for settings, said, _ in MISTAKES:
            with self.subTest(settings=settings):
                self.is_one_line(run(PROGRAM, **settings), said)

    def test_parameters_of_a_launcher(self):
        self.is_one_line(run(PROGRAM, RMA_RANK="7"), "RMA_RANK=7 but RMA_SIZE=1")

    def test_in_a_thread_and_from_a_config(self):
        self.is_one_line(run(PROGRAM, "thread", RMA_LOK="1"), "RMA_LOK")
        self.is_one_line(run(PROGRAM, "config"), "RMA_SPIN_US=soon (config)")

    def test_a_fabric_without_its_device(self):
        """Where there is a device, it is used: nothing is wrong."""
        done = run(PROGRAM, RMA_FABRIC="verbs")
        if done.returncode != 0:
            self.is_one_line(done, "RMA_FABRIC=verbs: ")

    def test_by_rmarun(self):
        for settings, said, _ in MISTAKES:
            with self.subTest(settings=settings):
                done = run(RMARUN, "-n", "2", PROGRAM, **settings)
                self.assertEqual(done.returncode, 2, done)
                self.assertNotIn("terminate called", done.stderr)
                lines = done.stderr.splitlines()
                self.assertIn("exited with status 2", lines[-1])
                for line in lines[:-1]:
                    self.assertTrue(line.startswith("rma: ") and said in line, done.stderr)

    def test_simulated(self):
        if SIMULATOR == "none":
            self.skipTest("no simulator")
        for settings, said, also in MISTAKES:
            if not also:
                continue
            with self.subTest(settings=settings):
                done = run(SIMULATOR, "-n", "3", PROGRAM, **settings)
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 3 if "RMA_TRACE" in settings else 1, done.stderr)

    def test_programs_that_catch_it(self):
        done = run(PROGRAM, "catch", RMA_LOK="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "caught bad_setting\n", ""))
        done = run(PROGRAM, "threads", RMA_LOK="1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_other_ends_are_the_programs(self):
        done = run(PROGRAM, "other")
        self.assertEqual((done.returncode, done.stderr), (7, "the program's own handler\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
