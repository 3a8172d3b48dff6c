#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of instructions.py's parser, on a file as callgrind writes it."""
import sys
import unittest

sys.dont_write_bytecode = True
import instructions  # noqa: E402

FILE = """\
version: 1
positions: line
events: Ir

ob=(1) /bin/instructions
fl=(1) instructions.cpp
fn=(1) main
10 5
cfn=(2) count_put
calls=100 3
12 1800
+3 7
cob=(2) /lib/librma.so
cfi=(2) window.cpp
cfn=(3) count_flush
calls=50 9
13 600
* 2

fn=(2)
3 1700
cfn=(3)
calls=10 9
* 100

fn=(3)
9 700
totals: 2500
"""


class Parser(unittest.TestCase):
    def test_adds_up_all_callers(self):
        costs = instructions.inclusive_costs(FILE.splitlines(keepends=True))
        self.assertEqual(costs, {"count_put": (100, 1800), "count_flush": (60, 700)})

    def test_difference_of_two_runs(self):
        fewer = {"count_put.constprop.0": (10, 1000), "main": (1, 5000)}
        more = {"count_put.constprop.0": (20, 1180), "main": (1, 9000)}
        self.assertEqual(instructions.per_call(fewer, more), {"put": 18.0})

    def test_a_profile_says_which_phase_it_is_of(self):
        self.assertEqual(instructions.phase_of(["desc: Trigger: --dump-before=phase_put_value"]), "put_value")
        self.assertIsNone(instructions.phase_of(["desc: Trigger: Program termination"]))

    def test_handlers_of_all_messages_count(self):
        found = {"rma::detail::context::on_message(int, unsigned short)": (3, 90), "other": (7, 1000)}
        self.assertEqual(instructions.handler_costs(found), (3, 90))

    def test_a_debug_build_is_skipped(self):
        self.assertIsNotNone(instructions.reason_to_skip("Debug", False))

    def test_assertions_are_not_counted(self):
        self.assertIsNotNone(instructions.reason_to_skip("Release", True))


if __name__ == "__main__":
    unittest.main()
