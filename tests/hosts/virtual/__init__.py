# SPDX-License-Identifier: Apache-2.0
"""The parts of `hosts`.

command_line  what was asked for; the world is started with it
needs         what this machine lacks, in words; how it gets that
door          the way into a host: a socket that takes commands
host          one host: its own file systems, then a door
world         the switch, the hosts on it, faults, and the job on them
launch        ways to start ranks: tcp boot, mpirun, srun
slurm         a Slurm of these hosts
"""
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
SHARED = Path("/run/hosts")  # in a file system that the hosts share, as clusters do; nobody else sees it
OWN = SHARED / "own"  # of each host, which the others do not see
NETWORK = "10.77.0"

# Exit statuses of `hosts`; others are those of the ranks.
WRONG_USAGE = 2
CANNOT_RUN_HERE = 3
SKIPPED = 77
TIMED_OUT = 124
HOST_FAILED = 125


class Failure(Exception):
    """`hosts` itself cannot go on: why, in one line, and its exit status."""

    def __init__(self, why: str, status: int):
        super().__init__(why)
        self.status = status


def name_of(host: int) -> str:
    return f"host{host}"


def address_of(host: int) -> str:
    return f"{NETWORK}.{host + 1}"
