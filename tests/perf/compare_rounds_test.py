#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what compare_tcp and compare_verbs make of their rounds, on runs that nobody measured. Usage:
compare_rounds_test.py FOLDER_OF_COMPARE"""
import argparse
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import compare_rounds

KEY = ("put_flush", 8)
BARS = {"quick": lambda key: 1.0}


def alone(*values):
    return [(value, 1.0 + 0.01 * i, 30) for i, value in enumerate(values)]


def disturbed(*values):
    return [(value, 1.6, 30) for value in values]


def far(*values):
    return [(value, 1.0, 160) for value in values]


def row(*rounds):
    """Of rounds (our runs, theirs)."""
    values = [{KEY: {"rma": ours, "quick": theirs}} for ours, theirs in rounds]
    found, = compare_rounds.rows_of(values, {KEY: "ns"}, BARS)
    return found


class Rounds(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_rounds(self):
        found = row((alone(10), alone(20)), (alone(90), alone(100)), (alone(40), alone(50)))
        self.assertEqual((found["ratio"], found["verdict"], found["compared"]), (0.8, "ok", 3))

    def test_runs_that_followed_each_other_are_compared(self):
        found = row((alone(10, 40, 80), alone(20, 20, 100)), (alone(60, 90), alone(100, 100)))
        self.assertEqual(found["pairs"], [(10, 20), (40, 20), (80, 100), (60, 100), (90, 100)])
        self.assertEqual((found["ratio"], found["verdict"], found["compared"]), (0.8, "ok", 5))

    def test_neither_of_two_runs_counts_if_one_was_disturbed(self):
        ours = alone(10, 10, 10) + disturbed(90) + alone(10)
        theirs = alone(20, 20) + disturbed(10) + alone(20, 20)
        found = row((ours, theirs))
        self.assertEqual((found["pairs"], found["state"]), ([(10, 20)] * 3, "alone"))

    def test_if_hardly_a_pair_was_quiet_all_count(self):
        found = row((alone(*[10] * 4) + disturbed(*[90] * 46), alone(*[20] * 50)))
        self.assertEqual((found["compared"], found["state"]), (50, "disturbed"))

    def test_if_hardly_a_round_was_quiet_all_count_and_it_is_said(self):
        found = row((alone(10), alone(20)), (disturbed(30), disturbed(20)), (disturbed(30), disturbed(20)))
        self.assertEqual((found["ratio"], found["compared"], found["state"]), (1.5, 3, "disturbed"))

    def test_what_was_measured_while_the_cores_were_far_does_not_count(self):
        quiet = (alone(10), alone(20))
        found = row((far(30), alone(20)), quiet, quiet, (alone(10), far(90)), quiet)
        self.assertEqual((found["ratio"], found["compared"], found["state"]), (0.5, 3, "alone"))

    def test_without_a_line_the_pace_decides(self):
        found = row(*[([(10, 1.0, 0), (90, 1.6, 0)], [(20, 1.0, 0), (20, 1.0, 0)])] * 3)
        self.assertEqual((found["pairs"], found["state"]), ([(10, 20)] * 3, "alone"))

    def test_the_usual_pace_is_not_a_lucky_one(self):
        rounds = [{KEY: {"rma": [(10, 0.5, 1)] + alone(*[10] * 40)}}]
        pace, line = compare_rounds.limits_of(rounds)
        self.assertGreater(pace, 1.0)
        self.assertGreater(line, 30)

    def test_a_tool_that_says_no_pace_counts(self):
        found = row(*[(alone(10) + disturbed(90), [(20, None, 0)] * 2)] * 3)
        self.assertEqual((found["ratio"], found["compared"], found["state"]), (0.5, 3, "alone"))

    def test_what_is_compared_like_a_tool_measures_stands_apart(self):
        values = [{KEY: {"rma": alone(10), ("rma", "quick"): alone(5), "quick": alone(20)}}]
        found, = compare_rounds.rows_of(values, {KEY: "ns"}, BARS)
        self.assertEqual((found["ratio"], found["compared"]), (0.25, 1))


class Time(unittest.TestCase):
    def rounds_within(self, seconds, lengths):
        """How many of three rounds are measured that take so long, one after the other."""
        now, begun = [0], []

        def one(ours_last):
            begun.append(ours_last)
            now[0] += lengths[len(begun) - 1]
            return {KEY: {}}, {KEY: "ns"}

        chosen = argparse.Namespace(rounds=3)
        rounds, units = compare_rounds.all_rounds(chosen, one, seconds, lambda: now[0])
        self.assertEqual((begun, units), ([False, True, False][:len(rounds)], {KEY: "ns"}))
        return len(rounds)

    def test_all_rounds_are_measured_if_there_is_time(self):
        self.assertEqual(self.rounds_within(30, [10, 10, 10]), 3)
        self.assertEqual(self.rounds_within(float("inf"), [10, 1000, 10]), 3)

    def test_a_round_that_would_not_end_in_time_is_left_out(self):
        self.assertEqual(self.rounds_within(29, [10, 10, 10]), 2)
        self.assertEqual(self.rounds_within(30, [5, 15, 5]), 2)

    def test_one_is_measured_in_any_case(self):
        self.assertEqual(self.rounds_within(5, [10, 10, 10]), 1)
        self.assertEqual(self.rounds_within(-5, [10, 10, 10]), 1)


if __name__ == "__main__":
    unittest.main()
