#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows that are too large for a control group, in a real one.

memory_limit_test.py --rmarun PATH --program PATH

Goal: a window that does not fit the limits of control groups is an error on all ranks; no process is killed for it.
Method: a job of two ranks in a group of 256 MiB and in one of 64 MiB, on one node and on two; a machine that lets
nobody make groups skips it. Each rank alone would fit.
Break: ask the machine only, or for the ranks of one node only.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

SKIPPED = 77
CASES_MIB = [(256, 200, 36), (64, 31, 4)]  # the group, and windows that do not fit it, and do
ROOT = pathlib.Path("/sys/fs/cgroup")


class Group:
    """A control group with a limit, which is gone at the end. OSError if it cannot be made."""

    def __init__(self, limit_mib):
        version_1 = ROOT / "memory"
        if version_1.is_dir():
            parent, limit = version_1, "memory.limit_in_bytes"
        else:
            parent, limit = ROOT, "memory.max"
            (ROOT / "cgroup.subtree_control").write_text("+memory")
        self.path = parent / f"rma-memory-limit-{os.getpid()}"
        self.path.mkdir()
        try:
            (self.path / limit).write_text(str(limit_mib << 20))
        except OSError:
            self.path.rmdir()
            raise

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(100):  # a killed process is in it for a moment
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.1)
        print(f"memory_limit_test: {self.path} stays")


def runs_well(group, command):
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=group.enter, check=False)
    if done.returncode == 0 and "too_large: done" in done.stdout:
        return True
    print(f"exit status {done.returncode} of {' '.join(command)}\n{done.stdout}{done.stderr}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rmarun", required=True)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    job = [options.rmarun, "-n", "2", "--timeout", "40"]
    good = []
    try:
        for limit_mib, large_mib, small_mib in CASES_MIB:
            program = [options.program, str(large_mib), str(small_mib)]
            with Group(limit_mib) as group:
                good += [runs_well(group, job + ["--nodes", nodes] + program) for nodes in "12"]
    except (OSError, subprocess.SubprocessError) as why:
        print(f"memory_limit_test: skipped: no control group can be made here: {why}")
        return SKIPPED
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
