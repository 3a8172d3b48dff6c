#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""instructions.py [--config NAME] PROGRAM: counts under callgrind what one call of each wrapper in
perf/instructions.cpp or the like executes, the wrapper included, and fails where a count exceeds its limit.

The program runs with N and with 2 N calls; the difference is free of start-up, lazy binding and first uses.
Exit status: 0 all within limits, 1 not, 77 cannot be counted here (and why).
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

CALLS = 2000
PREFIX = "count_"
# Instructions of one call, by program. A wrapper that is not here is printed only.
LIMITS = {
    "instructions": {
        "put": 22, "flush": 16, "fetch_and_op": 30, "lock_unlock": 70, "lock_scope": 75, "lock_all_put": 200,
        "put_rows": 270,
    },
    "registration_instructions": {"same_buffer": 95, "other_buffer": 180},
}
SKIPPED = 77
NAMED = re.compile(r"(c?fn)=\((\d+)\)(?: (.*))?$")


def inclusive_costs(lines):
    """{function: (calls, instructions, callees included)} of a callgrind file, for functions that are called."""
    names = {}
    costs = {}
    callee = None
    calls = None
    for line in lines:
        line = line.rstrip("\n")
        if match := NAMED.match(line):
            kind, number, name = match.groups()
            if name is not None:
                names[number] = name
            if kind == "cfn":
                callee = names[number]
        elif line.startswith("calls="):
            calls = int(line[len("calls="):].split()[0])
        elif calls is not None:
            # The line after calls= is "<position> <inclusive cost>".
            called, cost = costs.get(callee, (0, 0))
            costs[callee] = (called + calls, cost + int(line.split()[-1]))
            calls = None
    return costs


def count(program, calls, folder):
    out = os.path.join(folder, f"callgrind.{calls}")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--", program, str(calls)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    with open(out, encoding="utf-8", errors="replace") as file:
        return inclusive_costs(file)


def per_call(fewer, more):
    """{wrapper without prefix: instructions of one call}"""
    counts = {}
    for function, (calls, cost) in more.items():
        # A compiler may have made a copy for constant arguments: name.constprop.0. What it moved out of the way
        # (name.cold) is part of the function itself.
        name = function.split(".")[0]
        if name.startswith(PREFIX) and ".cold" not in function:
            calls_before, cost_before = fewer.get(function, (0, 0))
            counts[name[len(PREFIX):]] = (cost - cost_before) / (calls - calls_before)
    return counts


def reason_to_skip(config):
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if config not in ("", "Release", "RelWithDebInfo"):
        return f"counts of a {config} build say nothing"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--config", default="", help="build type of the program")
    chosen = parser.parse_args()
    if reason := reason_to_skip(chosen.config):
        print(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        counts = per_call(count(chosen.program, CALLS, folder), count(chosen.program, 2 * CALLS, folder))
    limits = LIMITS[os.path.basename(chosen.program)]
    status = 0
    print(f"{'call':<20} {'instructions':>12} {'limit':>6}")
    for name in sorted(counts.keys() | limits.keys()):
        limit = limits.get(name)
        if name not in counts:
            verdict = "MISSING"
        else:
            verdict = "" if limit is None else "ok" if counts[name] <= limit else "TOO MANY"
        if verdict not in ("", "ok"):
            status = 1
        print(f"{name:<20} {counts.get(name, float('nan')):>12.1f} {'' if limit is None else limit:>6} {verdict}")
    return status


if __name__ == "__main__":
    sys.exit(main())
