#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of perf/compare's verdict, on points that nobody measured. Usage: compare_test.py PATH_OF_COMPARE"""
import importlib.machinery
import importlib.util
import os
import sys
import unittest


def load(path):
    loader = importlib.machinery.SourceFileLoader("compare", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(path))
    loader.exec_module(module)
    return module


compare = load(sys.argv.pop(1))


def point(who, values, metric="put_flush", size=8, unit="ns", line_ns=(50, 52), number=1):
    return {"round": number, "who": who, "metric": metric, "bytes": size, "ranks": 2,
            "values": values if isinstance(values, list) else [values], "unit": unit, "line_ns": list(line_ns)}


def rows(points, *bars, statistic="median"):
    states = compare.add_states(points)
    table, units = compare.values_of(points, statistic)
    return [compare.row_of(bar, table, units, states) for bar in bars]


LATENCY = compare.Bar("latency", "put_flush", 8, 0.5)
RATE = compare.Bar("bandwidth", "put", 64, 4.0)


class Verdict(unittest.TestCase):
    def test_the_best_peer_counts(self):
        row, = rows([point("rma", 10), point("slow", 100), point("quick", 25)], LATENCY)
        self.assertEqual((row["who"], row["ratio"], row["verdict"]), ("quick", 0.4, "ok"))

    def test_a_time_above_its_bar(self):
        row, = rows([point("rma", 10), point("quick", 15)], LATENCY)
        self.assertEqual(row["verdict"], "NOT")

    def test_a_rate_must_be_above_its_bar(self):
        points = [point("rma", 30, "put", 64, "GB/s"), point("slow", 2, "put", 64, "GB/s"),
                  point("quick", 10, "put", 64, "GB/s")]
        row, = rows(points, RATE)
        self.assertEqual((row["who"], row["ratio"], row["verdict"]), ("quick", 3.0, "NOT"))

    def test_only_points_of_one_state_are_compared(self):
        far = (260, 270)
        points = [point("rma", 10), point("rma", 90, line_ns=far, number=2),
                  point("quick", 100, line_ns=far, number=2)]
        row, = rows(points, LATENCY)
        self.assertEqual((row["state"], row["ours"]), ("265 ns", 90))

    def test_the_near_state_is_preferred(self):
        far = (260, 270)
        points = [point(who, value, line_ns=line, number=number) for who, value in (("rma", 10), ("quick", 100))
                  for number, line in enumerate(((50, 52), far, far))]
        row, = rows(points, LATENCY)
        self.assertEqual(row["state"], "51 ns")

    def test_a_state_of_a_moment_is_not(self):
        points = [point(who, 10, line_ns=(108, 112), number=n) for who in ("rma", "quick") for n in range(30)]
        points += [point(who, 50, line_ns=(18, 18), number=30) for who in ("rma", "quick")]
        row, = rows(points, LATENCY)
        self.assertEqual((row["state"], row["ours"]), ("110 ns", 10))

    def test_a_point_in_which_the_state_changed_is_not_used(self):
        points = [point("rma", 10), point("quick", 30), point("quick", 300, line_ns=(50, 270), number=2)]
        row, = rows(points, LATENCY)
        self.assertEqual((row["state"], row["best"]), ("51 ns", 30))

    def test_states_that_differ_are_said(self):
        row, = rows([point("rma", 10), point("quick", 100, line_ns=(260, 270))], LATENCY)
        self.assertEqual(row["state"], "differ")

    def test_without_a_probe_all_points_are_alike(self):
        row, = rows([point("rma", 10, line_ns=(0, 0)), point("quick", 100, line_ns=(0, 0))], LATENCY)
        self.assertEqual((row["state"], row["verdict"]), ("any", "ok"))

    def test_rounds_give_a_median(self):
        points = [point("rma", value, number=n) for n, value in enumerate((10, 11, 500))] + [point("quick", 100)]
        row, = rows(points, LATENCY)
        self.assertEqual(row["ours"], 11)

    def test_what_is_slower_in_some_rounds_for_everyone_changes_no_ratio(self):
        points = [point(who, value * slower, number=n) for n, slower in enumerate((1, 1, 2, 3, 1.5))
                  for who, value in (("rma", 10), ("quick", 20), ("slow", 30))]
        points = [p for p in points if (p["who"], p["round"]) not in (("rma", 0), ("rma", 1))]
        row, = rows(points, LATENCY)
        self.assertEqual((row["who"], row["ratio"], row["verdict"]), ("quick", 0.5, "ok"))

    def test_runs_that_followed_each_other_are_compared(self):
        points = [point("rma", [10, 30, 10]), point("quick", [20, 60, 20]),
                  point("rma", [20, 20], number=2), point("quick", [90, 40], number=2)]
        row, = rows(points, LATENCY)
        self.assertEqual((row["ratio"], row["ours"], row["best"]), (0.5, 20, 40))

    def test_without_a_common_run_the_medians_are_compared(self):
        row, = rows([point("rma", 10), point("quick", 100, number=2)], LATENCY)
        self.assertEqual(row["ratio"], 0.1)

    def test_what_was_not_measured_misses_its_bar(self):
        row, = rows([point("quick", 100)], LATENCY)
        self.assertEqual(row["verdict"], "NOT")

    def test_no_peer_is_no_failure(self):
        row, = rows([point("rma", 10)], LATENCY)
        self.assertEqual(row["verdict"], "")

    def test_against_a_metric_of_ours(self):
        bar = compare.Bar("bandwidth", "put", 64, 0.95, "memcpy_put")
        points = [point("rma", 9, "put", 64, "GB/s"), point("rma", 10, "memcpy_put", 64, "GB/s"),
                  point("quick", 100, "put", 64, "GB/s")]
        row, = rows(points, bar)
        self.assertEqual((row["who"], row["ratio"], row["verdict"]), ("memcpy_put", 0.9, "NOT"))

    def test_one_name_may_have_two_units(self):
        points = [point("rma", 10), point("quick", 100), point("rma", 40, size=64, unit="GB/s"),
                  point("quick", 10, size=64, unit="GB/s")]
        latency, rate = rows(points, LATENCY, compare.Bar("bandwidth", "put_flush", 64, 4.0))
        self.assertEqual((latency["verdict"], rate["verdict"]), ("ok", "ok"))

    def test_best_takes_the_best_run(self):
        row, = rows([point("rma", [9, 10, 8]), point("quick", [100, 90])], LATENCY, statistic="best")
        self.assertEqual((row["ours"], row["best"]), (8, 90))
        row, = rows([point(who, [9, 10], "put", 64, "GB/s") for who in ("rma", "quick")], RATE, statistic="best")
        self.assertEqual((row["ours"], row["best"]), (10, 10))


class Plan(unittest.TestCase):
    def test_a_bar_brings_what_it_is_compared_with(self):
        bars = [bar for bar in compare.all_bars() if bar.metric == "promoted_get" and bar.bytes == 8]
        self.assertEqual(compare.metrics_of("user_memory", bars, None), {"promoted_get", "allocated_get"})
        self.assertEqual(compare.metrics_of("latency", bars, None), set())

    def test_peers_measure_what_they_can(self):
        for peer in compare.PEERS:
            wanted = compare.metrics_of("latency", compare.all_bars(), peer)
            self.assertEqual("put_flush" in wanted, "latency" in peer.programs)
            self.assertFalse(wanted & set(peer.skips))

    def test_every_row_can_be_shown(self):
        points = [point("rma", 10)]
        text = compare.as_text(rows(points, *compare.all_bars()))
        self.assertEqual(len(text.splitlines()), 1 + len(compare.all_bars()))


if __name__ == "__main__":
    unittest.main()
