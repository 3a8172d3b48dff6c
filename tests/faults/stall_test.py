#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at what a job says whose ranks wait for one that does not come.

stall_test.py RMARUN PROGRAM [--nodes K] [--scene S]

Goal: who waits for RMA_STALL_REPORT_S tells, once for its node, where the node's ranks are: which call, of which
window, and who is not in the library at all. Nothing is said where nobody waits that long.
Method: stall_program under rmarun; rank 0 reads its standard input until this test closes it, which it does when it has
read the report.
Break: leave the window's name out; do not say that a rank is in the program, or stopped; let each rank report.
"""
import argparse
import collections
import os
import re
import select
import signal
import subprocess
import sys
import time

RANKS = 3
LIMIT_S = 30
SCENES = {  # regular expressions
    "fence": "in fence of window 'halo'",
    "barrier": "in barrier",
    "allocate": "in allocate",
    "wait_signal": "in wait_signal of window 'halo'",
    "lock": "in (un)?lock of window 'halo', rank 0",  # between nodes an epoch may wait for its end
    "request": "in a wait for a request",
    "stopped": "in barrier",
}
END = "RMA_STALL_REPORT_S is after how many seconds"


def read_until(stream, words, limit_s):
    """What comes until `words` are in it."""
    text, until = "", time.monotonic() + limit_s
    while words not in text and time.monotonic() < until:
        if select.select([stream], [], [], 0.1)[0]:
            more = os.read(stream.fileno(), 65536).decode()
            if not more:
                break
            text += more
    return text


def problem_of(options, scene, place):
    """What is wrong with the report of one job; None if nothing is."""
    command = [options.rmarun, "-n", str(RANKS), "--nodes", str(options.nodes), "--timeout", str(LIMIT_S),
               options.program, scene]
    environment = dict(os.environ, RMA_STALL_REPORT_S="2")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as job:
        text = read_until(job.stderr, END, LIMIT_S)
        job.stdin.close()
        if scene == "stopped":
            job.send_signal(signal.SIGCONT)  # for all ranks
        rest = job.stderr.read().decode()
        status = job.wait()
    if END not in text:
        return f"no report: {text!r}"
    if status != 0:
        return f"the job's status is {status}: {text}{rest}"
    reports = collections.Counter(re.findall(r"has waited for (\d+) s", text + rest))
    if max(reports.values()) > options.nodes:  # a machine that has lost its time may come to those after 4 s
        return f"too many reports, {dict(reports)}: {text}{rest}"
    if not re.search(rf"rma:   ranks? [^:]*: {place}\n", text):
        return f"nobody is '{place}': {text}"
    rank_0 = "stopped by a signal, in (the library|wait_until of window 'halo')" if scene == "stopped" else \
        "in the program, outside the library"
    if options.nodes == 1 and not re.search(f"rma:   rank 0: {rank_0}\n", text):
        return f"nothing of rank 0: {text}"
    return None


def said_in_vain(options):
    """What a job says that ends at once, or that is not to say anything."""
    command = [options.rmarun, "-n", str(RANKS), "--timeout", str(LIMIT_S), options.program, "barrier"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=3 * LIMIT_S, env=dict(os.environ, RMA_STALL_REPORT_S="1"))
    return f"a job that nobody waits in: {done.returncode}, {done.stderr}" if done.returncode or done.stderr else None


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("rmarun")
    parser.add_argument("program")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--scene", choices=SCENES, help="only this one")
    options = parser.parse_args()
    found = {scene: problem_of(options, scene, place) for scene, place in SCENES.items()
             if options.scene in (None, scene)}
    found["nobody waits"] = said_in_vain(options)
    for scene, problem in found.items():
        if problem is not None:
            print(f"stall_test: {scene}: {problem}")
    sys.exit(any(found.values()))


main()
