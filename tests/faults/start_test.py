#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stops, kills or hangs one rank at a call of the start.

start_test.py RMARUN PROGRAM PRELOAD [--calls N] [--fabric F] [--strict]

Goal: the job ends with a line that names the rank, RMA_BOOT_TIMEOUT_MS after it at the latest. Where the others have
started already, `rmarun --timeout` shows it.
Method: PRELOAD (halt_at_call.cpp) counts the calls of the C library in the start of one rank, and lets one of N that
are spread over the start not return. The ranks are on one node, on three, or started by hand, when rank 0's process
serves the job; each of them is the one in turn.
Break: let a wait of the boot client end with an answer only; do not say what a rank is doing.
"""
import argparse
import concurrent.futures
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

RANKS = 3
BOOT_TIMEOUT_S = 2
LATER_S = 2  # the line is to come no later than this after the time-out
JOB_TIMEOUT_S = 12  # time-out of rmarun: longer than the start may take
PATIENCE_S = 60
TOGETHER = 4  # jobs at the same time; they mostly wait
STARTED = "start_test: all others have started"
PLACES = ("one node", "three nodes", "by hand")
WAYS = ("stop", "hang", "stop", "kill")


class Job:
    """Three ranks of the program, one of which halts."""

    def __init__(self, options, place, rank, **halt):
        self.options, self.place, self.rank = options, place, rank
        self.environment = dict(os.environ, RMA_BOOT_TIMEOUT_MS=str(1000 * BOOT_TIMEOUT_S), HALT_RANK=str(rank),
                                LD_PRELOAD=options.preload, RMA_FABRIC=options.fabric, **halt)

    def run(self):
        """What the job has said, and for how long it has run."""
        begin = time.monotonic()
        text = self.by_hand() if self.place == "by hand" else self.by_rmarun()
        return text, time.monotonic() - begin

    def by_rmarun(self):
        nodes = 1 if self.place == "one node" else RANKS
        environment = dict(self.environment)
        exports = ["-x", "LD_PRELOAD=" + environment.pop("LD_PRELOAD")]
        command = [self.options.rmarun, "-n", str(RANKS), "--nodes", str(nodes), "--timeout", str(JOB_TIMEOUT_S),
                   *exports, self.options.program]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", check=False, timeout=PATIENCE_S, env=environment).stdout

    def by_hand(self):
        """The ranks that do not halt end; the one that does is ended then."""
        address = f"tcp://127.0.0.1:{free_port()}"
        with tempfile.TemporaryFile(mode="w+", errors="replace") as said:
            ranks = [self.start_rank(rank, address, said) for rank in range(RANKS)]
            awaited = [process for rank, process in enumerate(ranks)
                       if rank != self.rank or "HALT_CALL" not in self.environment]
            started = False
            try:
                started = all([process.wait(timeout=PATIENCE_S) == 0 for process in awaited])
            except subprocess.TimeoutExpired:
                pass  # the lines so far do not name the rank
            finally:
                for process in ranks:
                    process.kill()
                    process.wait()
            said.seek(0)
            return said.read() + (STARTED if started else "")

    def start_rank(self, rank, address, said):
        environment = dict(self.environment, RMA_BOOT=address, RMA_RANK=str(rank), RMA_SIZE=str(RANKS),
                           RMA_KEY="0123456789abcdef" * 2, RMA_NODE=f"node{rank % 2}")
        return subprocess.Popen([self.options.program], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                env=environment)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def names(rank, text):
    """The lines that tell of the rank: as who holds up the start, as who has ended, or where it is."""
    patterns = [rf"waits for .*\brank {rank}\b", rf"have not: [\d, ]*\b{rank}\b",
                rf"\brank {rank} \(pid \d+\) was killed", rf"\brank {rank} ended\b", rf"^(rmarun|rma):   rank {rank}: ",
                STARTED]
    if rank == 0:
        patterns += [r"process of rank 0\b", r"rank 0 must run on that host"]
    return [line for line in text.splitlines() if any(re.search(each, line) for each in patterns)]


def calls_of_start(options, place, rank):
    """How many calls the rank makes in its start."""
    with tempfile.NamedTemporaryFile(mode="r") as file:
        text, _ = Job(options, place, rank, HALT_COUNT=file.name).run()
        counted = file.read()
    if not counted:
        sys.exit(f"start_test: {place}, rank {rank}: nothing was counted: {text}")
    return int(counted)


def problem_of(options, place, rank, way, call):
    """What is wrong with one job, or None."""
    text, lasted_s = Job(options, place, rank, HALT_CALL=str(call), HALT_HOW=way).run()
    told = names(rank, text)
    ended_by_timeout = "(--timeout)" in text
    where = f"{place}, rank {rank}, {way} at call {call}: after {lasted_s:.1f} s"
    if options.verbose:
        print(f"{where}: {told[0] if told else text!r}")
    if not told:
        return f"{where}: nothing names the rank: {text}"
    if options.strict and not ended_by_timeout and place != "by hand" and lasted_s > BOOT_TIMEOUT_S + LATER_S:
        return f"{where}: that is late: {text}"
    return None


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("rmarun")
    parser.add_argument("program")
    parser.add_argument("preload")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--fabric", default="tcp")
    parser.add_argument("--strict", action="store_true", help="the time counts, too: for a machine that is not busy")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    signal.alarm(600 + 4 * options.calls)
    kinds = list(itertools.product(PLACES, range(RANKS)))
    counted = {kind: calls_of_start(options, *kind) for kind in kinds}
    jobs = []
    for i in range(options.calls):
        place, rank = kinds[i * 4 % len(kinds)]  # neighbors differ in both
        call = 1 + (2 * i + 1) * counted[place, rank] // (2 * options.calls)
        jobs.append((place, rank, WAYS[(i + i // len(kinds)) % len(WAYS)], call))
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        problems = list(filter(None, pool.map(lambda job: problem_of(options, *job), jobs)))
    for problem in problems:
        print(f"start_test: {problem}")
    print(f"start_test: {len(problems)} of {len(jobs)} say too little")
    sys.exit(bool(problems))


main()
