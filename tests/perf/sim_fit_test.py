#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of perf/sim_fit on a machine that is made up. Usage: sim_fit_test.py PATH_OF_SIM_FIT"""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest


def load(path):
    loader = importlib.machinery.SourceFileLoader("sim_fit", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("sim_fit", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


PATH = sys.argv.pop(1)
sim_fit = load(PATH)
SIZES = (32768, 65536, 262144)


class MadeUp:
    """40 ns and 20 GB/s for a copy; a barrier of 300 ns. In its simulator calls cost 10 ns, a barrier two wakes."""

    def measured(self):
        points = {("ring", size): 40 + size / 20 + 300 + 10 for size in SIZES}
        points.update({("barrier", 0): 300, ("pack", 48): 7.5})
        return {key: [value * 0.5, value, value * 1.5, value, value * 9] for key, value in points.items()}

    def simulated(self, patterns, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        value = {name: float(number) for name, number in re.findall(r"^(\w+) += ([0-9.]+) ", text, re.MULTILINE)}
        barrier = 2 * value["wake_time"] + 60
        points = {("barrier", 0): barrier} if "barrier" in patterns else {}
        if "ring" in patterns:
            for size in SIZES:
                points["ring", size] = 10 + value["copy_latency"] + size / value["copy_bandwidth"] + barrier
        return points


class Fit(unittest.TestCase):
    def test_line(self):
        intercept, slope = sim_fit.line_through([(10, 7), (20, 12), (40, 22)])
        self.assertAlmostEqual(intercept, 2)
        self.assertAlmostEqual(slope, 0.5)

    def test_small_points_count_as_much_as_large_ones(self):
        _, slope = sim_fit.line_through([(1, 1), (2, 2), (1000, 1100)])
        self.assertAlmostEqual(slope, 1.07, delta=0.04)

    def test_constants_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fitted.params")
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(sim_fit.fit(MadeUp(), path, MadeUp().measured()), 7.5)
            with open(path, encoding="utf-8") as file:
                text = file.read()
        self.assertIn("copy_latency   = 40.000 ns", text)
        self.assertIn("copy_bandwidth = 20.0000 GB/s", text)
        self.assertIn("wake_time      = 120.000 ns", text)

    def test_table_gives_the_largest_error(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            worst = sim_fit.table("t", {("a", 1): [90, 100, 120], ("b", 2): [200]}, {("a", 1): 90, ("b", 2): 202})
        self.assertAlmostEqual(worst, 0.1)
        self.assertIn("| a | 1 | 100 (10) | 90 | -10.0 % |", out.getvalue())

    def test_rounds_in_another_state_do_not_count(self):
        near, far, both = (False, "near"), (True, "far"), (None, "both")
        self.assertEqual(sim_fit.steady([near, both, far, near]), ["near", "near"])
        self.assertEqual(sim_fit.steady([far, both, far, near]), ["far", "far"])
        self.assertEqual(sim_fit.steady([both]), [])
        self.assertEqual(sim_fit.mad([1, 2, 4, 100]), 1.5)

    def test_a_machine_that_flips_is_measured_again(self):
        machine = sim_fit.Machine.__new__(sim_fit.Machine)
        machine.rounds = 3
        crossings = iter([50, 50, 60, 270, 50, 51, 270, 270, 52, 53])

        def run(*_):
            first, second = next(crossings), next(crossings)
            machine.crossings += [first, second]
            return {("ring", 8): first + second}

        machine.run = run
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(machine.measured(("ring",)), {("ring", 8): [100, 101, 105]})
        self.assertEqual(out.getvalue(), "5 rounds, 3 of them in one state of the machine\n")

    def test_what_is_not_built_is_one_line(self):
        done = subprocess.run([sys.executable, PATH, "--build", "/nowhere"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "sim_fit: /nowhere/tools/rmarun is not built\n")


if __name__ == "__main__":
    unittest.main()
