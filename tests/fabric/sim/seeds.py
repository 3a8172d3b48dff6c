#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""seeds.py RMA_SIM PROGRAM SEEDS [FIRST] [-- ARGUMENTS]: a program in bad weather, once for each seed.

Number of ranks, ranks on a node and settings are drawn from the seed, too. The first seed is new in every run unless it
is given. A run that fails prints the one command that has it again. Ends with "N passed, M failed".
"""
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

SETTINGS = ["", "", "", "RMA_INTRANODE=off", "RMA_PROGRESS_THREAD=1", "RMA_USER_MEMORY=handler", "RMA_PROMOTE=1"]
RUN_SECONDS_MAX = 300


def command(rma_sim, program, seed, arguments):
    dice = random.Random(seed)
    setting = dice.choice(SETTINGS)
    line = [rma_sim, "-n", str(dice.choice([2, 3, 4, 5])), "--ranks-per-node", str(dice.choice([1, 1, 2, 3])),
            "--topology", dice.choice(["switch", "fat-tree", "fat-tree:k=2,n=3", "torus:3x3"]), "--faults",
            "--seed", str(seed)]
    return line + (["-x", setting] if setting else []) + [program, "--seed", str(seed), *arguments]


def run(line):
    """None, or what went wrong."""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return f"not over after {RUN_SECONDS_MAX} s"
    if done.returncode == 0:
        return None
    told = [text for text in (done.stdout + done.stderr).splitlines() if not text.startswith(("ok ", "skipped "))]
    return "\n".join(told[-8:])


def main():
    given = sys.argv[1:]
    arguments = []
    if "--" in given:
        arguments = given[given.index("--") + 1:]
        given = given[:given.index("--")]
    rma_sim, program, count = given[0], given[1], int(given[2])
    first = int(given[3]) if len(given) > 3 else int(time.time())
    print(f"seeds {first} to {first + count - 1}", flush=True)
    failed = 0
    lines = [command(rma_sim, program, seed, arguments) for seed in range(first, first + count)]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for done, (line, trouble) in enumerate(zip(lines, pool.map(run, lines)), 1):
            if trouble is not None:
                failed += 1
                print(f"FAILED: {trouble}\nreplay: {' '.join(line)}", flush=True)
            if done % 20 == 0:
                print(f"{done} of {count}", flush=True)
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
