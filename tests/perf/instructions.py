#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""instructions.py [--config NAME] [--asserts] [--launcher RMARUN --nodes N --way NAME] PROGRAM: counts under callgrind
what one call of each wrapper in perf/instructions.cpp or the like executes, the wrapper included, and fails where a
count exceeds its limit.

With a launcher the program has two ranks, of which the first one calls: counted are its wrappers, and what the second
one's handler of messages executes for each call. The environment makes the way that calls take, which has the name.

The program runs with N and with 2 N calls; the difference is free of start-up, lazy binding and first uses.
Exit status: 0 all within limits, 1 not, 77 cannot be counted here (and why).
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

CALLS = 2000
PREFIX = "count_"
PHASE = "phase_"
# Handles every message, whatever it is about.
HANDLER = "rma::detail::context::on_message("
# Makes progress within a call now and then, by the clock: what it executes is not the call's own.
PROGRESS = "rma::detail::context::look_if_due(*"
# Instructions of one call, by program and way. A wrapper that is not here is printed only.
LIMITS = {
    "instructions": {
        "put": 22, "flush": 16, "fetch_and_op": 30, "lock_unlock": 70, "lock_scope": 75, "lock_all_put": 200,
        "put_rows": 270, "accumulate_1024": 60 * 1024, "pack_nested": 2100, "pack_indexed": 5300,
    },
    # By wrappers of MPI's calls, whose types and operators are chosen at run time: as counted when these were written
    # down. The library's own take 22 (put), 16 (flush), 30 (fetch_and_op) and 70 (lock_unlock).
    **{f"mpi_instructions_{mpi}": {"put": 128, "get": 131, "flush": 50, "fetch_and_op": 182, "accumulate": 208,
                                   "compare_and_swap": 158, "lock_unlock": 155} for mpi in ("openmpi", "mpich")},
    # A start of a shape that has been started before, and its end, besides messages.
    "collective_instructions": {"ibarrier": 715, "iallreduce": 825, "ialltoall": 950, "persistent": 455},
    "registration_instructions": {"same_buffer": 95, "other_buffer": 180},
    # Both sides of a message; how many receives are posted besides makes no difference.
    "message_instructions": {"send_then_recv": 290, "send_recv": 920, "among_10": 1060, "among_100000": 1060},
    # These were counted when they were written down; a change may exceed it by TOLERANCE.
    "far_instructions tcp": {
        "far_put": 971, "far_put_value": 1062, "far_get": 961, "far_fetch_and_op": 1145, "far_accumulate": 1009,
        "handle_fetch_and_op": 748, "handle_accumulate": 440,
    },
    "far_instructions shm": {
        "far_put": 792, "far_put_value": 827, "far_get": 782, "far_fetch_and_op": 1147, "far_accumulate": 1013,
        "handle_fetch_and_op": 698, "handle_accumulate": 440,
    },
    "far_instructions handler": {
        "far_put": 970, "far_put_value": 1005, "far_get": 1006, "far_fetch_and_op": 1144, "far_accumulate": 1011,
        "handle_put": 304, "handle_put_value": 304, "handle_get": 637, "handle_fetch_and_op": 698,
        "handle_accumulate": 440,
    },
}
TOLERANCE = 1.15
SKIPPED = 77
NAMED = re.compile(r"(c?fn)=\((\d+)\)(?: (.*))?$")
TRIGGER = re.compile(r"desc: Trigger: .*" + PHASE + r"(\w+)")


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


def run(command, program, calls):
    done = subprocess.run([*command, "--", program, str(calls)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} {program} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def count(program, calls, folder):
    out = os.path.join(folder, f"callgrind.{calls}")
    run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"], program, calls)
    return inclusive_costs(read(out))


def phase_of(lines):
    """What a profile was written before: the end of this phase; None if it is that of the program's end."""
    return next((match[1] for line in lines if (match := TRIGGER.match(line))), None)


def handler_costs(found):
    """(messages, instructions) of all that a rank handled."""
    handlers = [cost for function, cost in found.items() if function.startswith(HANDLER)]
    return sum(messages for messages, _ in handlers), sum(instructions for _, instructions in handlers)


def count_far(launcher, nodes, program, calls, folder):
    """What `count` returns for the first rank, and "count_handle_PHASE" for the second one's handlers: as if each
    call of the first rank were one of its."""
    out = os.path.join(folder, f"callgrind.{calls}")
    counted = f"--toggle-collect={PREFIX}* --toggle-collect='{PROGRESS}'"  # the first turns it on, the second off
    run([launcher, "-n", "2", "--nodes", nodes, "--timeout", "150", "sh", "-c",
         f"[ $RMA_RANK = 0 ] && set -- {counted} \"$@\"; exec valgrind --tool=callgrind "
         f"--callgrind-out-file={out}.$RMA_RANK '--dump-before={PHASE}*' \"$@\"", "sh"], program, calls)
    costs = {}
    for path in glob.glob(f"{out}.*"):
        lines = read(path)
        phase = phase_of(lines)
        if phase is None:
            continue
        found = inclusive_costs(lines)
        if path.startswith(f"{out}.0"):
            for function, cost in found.items():
                if function.startswith(PREFIX) and cost[0] == calls:
                    costs[function] = cost
        else:
            handled = handler_costs(found)
            if handled[0] >= calls:  # else they are not about the calls
                costs[f"{PREFIX}handle_{phase}"] = (calls, handled[1])
    return costs


def per_call(fewer, more):
    """{wrapper without prefix: instructions of one call}"""
    counts = {}
    for function, (calls, cost) in more.items():
        # A compiler may have made a copy for constant arguments: name.constprop.0. The code that it moved away
        # (name.cold) is part of the function itself.
        name = function.split(".")[0]
        if name.startswith(PREFIX) and ".cold" not in function:
            calls_before, cost_before = fewer.get(function, (0, 0))
            counts[name[len(PREFIX):]] = (cost - cost_before) / (calls - calls_before)
    return counts


def reason_to_skip(config, asserts):
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if config not in ("", "Release", "RelWithDebInfo"):
        return f"counts of a {config} build say nothing"
    if asserts:
        return "assertions would be counted, too; the preset release has none"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--config", default="", help="build type of the program")
    parser.add_argument("--asserts", action="store_true", help="it has assertions in what is counted")
    parser.add_argument("--launcher", help="starts the two ranks of a program about calls to another rank")
    parser.add_argument("--nodes", default="1", help="on so many virtual nodes")
    parser.add_argument("--way", default="", help="the name of the way that these calls take")
    chosen = parser.parse_args()
    if reason := reason_to_skip(chosen.config, chosen.asserts):
        print(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        if chosen.launcher:
            counts = per_call(*[count_far(chosen.launcher, chosen.nodes, chosen.program, n, folder)
                                for n in (CALLS, 2 * CALLS)])
        else:
            counts = per_call(count(chosen.program, CALLS, folder), count(chosen.program, 2 * CALLS, folder))
    limits = LIMITS[f"{os.path.basename(chosen.program)} {chosen.way}".strip()]
    tolerance = TOLERANCE if chosen.launcher else 1
    status = 0
    print(f"{'call':<24} {'instructions':>12} {'limit':>6}")
    for name in sorted(counts.keys() | limits.keys()):
        limit = limits.get(name)
        if name not in counts:
            verdict = "MISSING"
        else:
            verdict = "" if limit is None else "ok" if counts[name] <= limit * tolerance else "TOO MANY"
        if verdict not in ("", "ok"):
            status = 1
        print(f"{name:<24} {counts.get(name, float('nan')):>12.1f} {'' if limit is None else limit:>6} {verdict}")
    return status


if __name__ == "__main__":
    sys.exit(main())
