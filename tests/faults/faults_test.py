#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills ranks and looks at what the others do.

faults_test.py --rmarun PATH --program PATH [--ranks 4] [--repeat 12] [--seed S] [--only REGEX] [--victim V]

Each repetition starts fault_program under rmarun with one scenario (where the victim is when it dies) and one victim,
with --keep-going, so that the survivors can show that they work on, or without, so that rmarun must end the job.

Goal: every other rank gets peer_failed that names the dead one within 2 s of its death, the survivors' operations among
themselves work, rmarun's exit status is not 0, and no process, socket or file stays behind.
Method: fault_program prints when it kills and when each rank is told, by the clock that all processes share.
Break: leave a dead rank out of the words that waiting looks at, or do not recover its lock.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time
import uuid

TOLD_WITHIN_NS = 2_000_000_000
JOB_LIMIT_S = 30

# Scenarios whose job ends by itself: (rmarun's exit status, words of its message).
ENDS = {
    "exit_early": (1, "without destroying its Runtime"),
    "exit_with_status": (3, "exited with status 3"),
    "throw": (128 + signal.SIGABRT, "signal 6"),
    "abort": (7, "the reactor is too hot"),
}
KILLED = (128 + signal.SIGKILL, "signal 9")


class Job:
    """One run of fault_program, and what was found in its output."""

    def __init__(self, options, scenario, victim, keep_going, seed):
        self.scenario, self.victim, self.keep_going, self.seed = scenario, victim, keep_going, seed
        self.ranks = options.ranks
        self.marker = uuid.uuid4().hex
        self.command = [options.rmarun, "-n", str(options.ranks), "--timeout", str(JOB_LIMIT_S)]
        self.command += ["--keep-going"] if keep_going else []
        self.command += [options.program, scenario, str(victim), str(seed)]
        self.problems = []
        self.worst_ns = 0

    def run(self):
        shm_before = shm_files()
        environment = dict(os.environ, FAULTS_JOB=self.marker)
        done = subprocess.run(self.command, capture_output=True, text=True, errors="replace", env=environment,
                              timeout=3 * JOB_LIMIT_S, check=False)
        self.out, self.err, self.status = done.stdout, done.stderr, done.returncode
        self.check_left_behind(shm_before)
        self.check_verdict()
        self.check_reports()
        return not self.problems

    def check_left_behind(self, shm_before):
        processes = processes_with(self.marker)
        if processes:
            self.problems.append(f"processes are left: {processes}")
        new = [name for name in shm_files() - shm_before if "rma" in name]
        if new:
            self.problems.append(f"files in /dev/shm are left: {new}")
        boot = re.search(r"^job boot=local://(\S+)", self.out, re.MULTILINE)
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as sockets:
            if boot and boot.group(1) in sockets.read():
                self.problems.append("the boot socket is left")

    def check_verdict(self):
        status, words = ENDS.get(self.scenario, KILLED)
        if self.status == 124:
            self.problems.append("the job hung until --timeout")
        elif self.status != status:
            self.problems.append(f"rmarun's exit status is {self.status}, not {status}")
        if words not in self.err or f"rank {self.victim}" not in self.err:
            self.problems.append(f"rmarun does not say that rank {self.victim} ended: '{words}'")

    def check_reports(self):
        for line in self.out.splitlines():
            if line.startswith(("wrong ", "untold ")):
                self.problems.append(line)
        killed = re.search(r"^killed rank=(\d+) at=(\d+)", self.out, re.MULTILINE)
        if self.scenario == "abort":
            return
        if not killed:
            self.problems.append("nobody was killed")
            return
        told = {}
        pattern = r"^told rank=(\d+) of=(-?\d+) code=(\w+) at=(\d+)"
        for rank, of, code, at in re.findall(pattern, self.out, re.MULTILINE):
            told[int(rank)] = int(at) - int(killed.group(2))
            self.worst_ns = max(self.worst_ns, told[int(rank)])
            if code != "peer_failed" or int(of) != self.victim:
                self.problems.append(f"rank {rank} was told {code} of rank {of}")
            if told[int(rank)] > TOLD_WITHIN_NS:
                self.problems.append(f"rank {rank} was told after {told[int(rank)] / 1e9:.2f} s")
        if self.keep_going:
            self.check_survivors(told)

    def check_survivors(self, told):
        lived = {int(rank) for rank in re.findall(r"^survived rank=(\d+)", self.out, re.MULTILINE)}
        for rank in range(self.ranks):
            if rank != self.victim and rank not in told:
                self.problems.append(f"rank {rank} was not told")
            if rank != self.victim and rank not in lived:
                self.problems.append(f"rank {rank} did not go on")

    def name(self):
        return f"{self.scenario} victim {self.victim}{' keep-going' if self.keep_going else ''}"


def shm_files():
    try:
        return set(os.listdir("/dev/shm"))
    except OSError:
        return set()


def processes_with(marker):
    """Live processes whose environment has the marker, and what they are."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if marker.encode() in file.read():
                    with open(f"/proc/{pid}/cmdline", "rb") as words:
                        found.append((int(pid), words.read().replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            pass
    return found


def plan(options):
    """The runs: all scenarios in turn, victims in turn; scenarios with survivors mostly with --keep-going."""
    listed = subprocess.run([options.program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in listed if re.search(options.only, name)]
    if not names:
        sys.exit(f"no scenario matches '{options.only}'")
    for i in range(options.repeat):
        # With a stride that shares no factor with their number all are visited before one comes again.
        stride = next(s for s in (7, 11, 13, 1) if len(names) % s)
        scenario = names[(options.seed + i * stride) % len(names)] if len(names) > 1 else names[0]
        victim = (options.seed + i + i // options.ranks) % options.ranks if options.victim is None else options.victim
        keep_going = scenario != "abort" and (i + options.seed) % 5 != 4
        if options.mode:
            keep_going = options.mode == "keep-going"
        yield Job(options, scenario, victim, keep_going, options.seed * 1000 + i)


def replay(options, job):
    mode = "keep-going" if job.keep_going else "end"
    return (f"faults_test.py --rmarun {options.rmarun} --program {options.program} --ranks {options.ranks} "
            f"--only '^{job.scenario}$' --victim {job.victim} --mode {mode} --repeat 1 --seed {job.seed // 1000}")


def parse():
    parser = argparse.ArgumentParser(description="kills ranks and looks at what the others do")
    parser.add_argument("--rmarun", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--only", default="")
    parser.add_argument("--victim", type=int)
    parser.add_argument("--mode", choices=["keep-going", "end"])
    return parser.parse_args()


def main():
    options = parse()
    print(f"faults: {options.repeat} runs of {options.ranks} ranks, seed {options.seed}", flush=True)
    failed = 0
    worst_ns = 0
    for job in plan(options):
        if job.run():
            print(f"ok {job.name()} (told within {job.worst_ns / 1e6:.1f} ms)", flush=True)
        else:
            failed += 1
            print(f"FAILED {job.name()}")
            for problem in job.problems:
                print(f"  {problem}")
            print(f"  replay: {replay(options, job)}\n--- output\n{job.out}--- errors\n{job.err}---", flush=True)
        worst_ns = max(worst_ns, job.worst_ns)
    print(f"{options.repeat - failed} passed, {failed} failed; the slowest was told within {worst_ns / 1e6:.1f} ms")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
