#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks 1 and 4, started by hand, meet for the first time when rank 0, whose process serves the job, does not answer.

first_contact_test.py PROGRAM

Goal: the call of rank 1 ends, with an error that names rank 0 and says what to do.
Method: first_contact_program, whose rank 0 stops itself or ends its Runtime; then the standard input of the others is
closed.
Break: let get wait for ever; leave the status of the lost server as it is.
"""
import os
import socket
import subprocess
import sys

RANKS = 6
PATIENCE_S = 50
REASONS = {"stopped": "in the process of rank 0, which has not answered for RMA_BOOT_TIMEOUT_MS",
           "left": "in the process of rank 0, which has ended"}
REMEDY = "start the ranks with rmarun"
WAYS = ("put", "lock", "request")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(program, address, rank, rank_0, way):
    environment = dict(os.environ, RMA_BOOT=address, RMA_RANK=str(rank), RMA_SIZE=str(RANKS), RMA_FABRIC="tcp",
                       RMA_KEY="0123456789abcdef" * 2, RMA_NODE=f"node{rank}", RMA_BOOT_TIMEOUT_MS="3000")
    return subprocess.Popen([program, rank_0, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=environment, text=True)


def problem_of(program, rank_0, way):
    """What is wrong with one job, or None."""
    address = f"tcp://127.0.0.1:{free_port()}"
    ranks = [start(program, address, rank, rank_0, way) for rank in range(RANKS)]
    try:
        said = ranks[1].stdout.readline()
        if said != "ready\n":
            return f"rank 1 is not ready: {said}"
        os.waitid(os.P_PID, ranks[0].pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        said = ranks[1].communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        said = "nothing"
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            rank.stdin.close()
            rank.stdout.close()
    return None if REASONS[rank_0] in said and REMEDY in said else f"rank 1 says: {said}"


def main():
    found = {(rank_0, way): problem_of(sys.argv[1], rank_0, way) for rank_0 in REASONS for way in WAYS}
    for case, problem in found.items():
        if problem is not None:
            print(f"first_contact_test: {case}: {problem}")
    sys.exit(any(found.values()))


main()
