#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""killed_start.py RMARUN PROGRAM KILLS [SEED]

Goal: whenever a rank is killed, nothing of it stays in /dev/shm or as a System V segment.
Method: in namespaces of its own, so that other tests leave nothing there, jobs are started one after the other, and a
rank of each is killed at a random moment of the time that an undisturbed job takes.
Break: let UCX have its shared memory (src/fabric/ucx/library.cpp).
"""
import os
import random
import subprocess
import sys
import time

INSIDE = "KILLED_START_INSIDE"


def enter_namespaces():
    """Starts this script again where /dev/shm and System V segments are its own."""
    own = ["unshare", "--mount", "--ipc"]
    probe = subprocess.run(own + ["mount", "-t", "tmpfs", "none", "/dev/shm"], capture_output=True, text=True,
                           check=False)
    if probe.returncode != 0:
        print(f"skipped: no namespaces for mounts here: {probe.stderr.strip()}")
        sys.exit(77)
    mounted = ["sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh", sys.executable]
    os.environ[INSIDE] = "1"
    os.execvp(own[0], own + mounted + sys.argv)


def left():
    """What is in memory that outlives processes."""
    with open("/proc/sysvipc/shm", encoding="ascii") as table:
        segments = table.read().splitlines()[1:]
    return os.listdir("/dev/shm") + segments


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return [int(child) for child in children.read().split()]


class Jobs:
    def __init__(self, rmarun, program):
        self.command = [rmarun, "-n", "4", "--nodes", "2", "--timeout", "30", program, "unchanged"]

    def start(self):
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def duration_s(self):
        began = time.monotonic()
        if self.start().wait() != 0:
            sys.exit("killed_start: an undisturbed job fails")
        return time.monotonic() - began

    def kill_one(self, after_s, rng):
        """True if a rank was there to be killed."""
        job = self.start()
        try:
            job.wait(timeout=after_s)
            return False
        except subprocess.TimeoutExpired:
            ranks = children_of(job.pid)
        killed = False
        if ranks:
            try:
                os.kill(rng.choice(ranks), 9)
                killed = True
            except ProcessLookupError:
                pass
        job.wait()
        return killed


def main():
    if INSIDE not in os.environ:
        enter_namespaces()
    rmarun, program, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    jobs = Jobs(rmarun, program)
    whole_s = min(jobs.duration_s() for _ in range(2))
    killed = tries = 0
    while killed < wanted and tries < 4 * wanted:
        tries += 1
        killed += jobs.kill_one(rng.uniform(0, whole_s), rng)
    remains = left()
    print(f"killed_start: {killed} of {wanted} ranks killed, {len(remains)} left behind, seed {seed}")
    for each in remains:
        print(f"  {each}")
    return 0 if killed == wanted and not remains else 1


if __name__ == "__main__":
    sys.exit(main())
