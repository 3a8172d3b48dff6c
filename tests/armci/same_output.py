#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same_output.py --ranks N [--nodes K] [--sorted] --launcher MPIRUN PROGRAM REFERENCE: both are started by the launcher
and must print the same and exit with 0. With --nodes PROGRAM alone runs on K virtual nodes of this machine. With
REFERENCE a text file, that is what must be printed."""
import argparse
import difflib
import os
import subprocess
import sys


def wrapper(nodes, ranks):
    """A shell's words that put each rank on its virtual node."""
    if nodes <= 1:
        return []
    number = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    return ["sh", "-c", f"RMA_NODE=node$(({number} * {nodes} / {ranks})) exec \"$@\"", "node"]


def run(given, program, nodes=1, environment=None):
    command = [given.launcher, "-n", str(given.ranks), *wrapper(nodes, given.ranks), program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=given.timeout, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        print(f"{program}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return None
    lines = done.stdout.splitlines()
    return sorted(lines) if given.sorted else lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=100)
    parser.add_argument("--sorted", action="store_true")
    parser.add_argument("program")
    parser.add_argument("reference")
    given = parser.parse_args()
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    os.environ.setdefault("OMPI_MCA_rmaps_base_oversubscribe", "1")
    ours = run(given, given.program, given.nodes)
    if given.reference.endswith(".txt"):
        with open(given.reference, encoding="utf-8") as file:
            theirs = file.read().splitlines()
    else:
        # ARMCI-MPI needs this to be right on MPICH 4.0, whose allocated windows lose updates.
        mpich = {"ARMCI_USE_WIN_ALLOCATE": "0"} if "mpich" in given.launcher else {}
        theirs = run(given, given.reference, environment=mpich)
    if ours is None or theirs is None:
        return 1
    if ours != theirs:
        print("\n".join(difflib.unified_diff(theirs, ours, given.reference, given.program, lineterm="")))
        return 1
    print(f"{len(ours)} lines, the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
