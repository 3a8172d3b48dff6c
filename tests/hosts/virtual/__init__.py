# SPDX-License-Identifier: Apache-2.0
"""The parts of `hosts`.

command_line  what was asked for; the world is started with it
needs         what this machine lacks, in words; how it gets that
door          the way into a host: a socket that takes commands
host          one host: its own file systems, then a door
world         the switch, the hosts on it, faults, and the job on them
launch        ways to start ranks: tcp boot, mpirun, srun
slurm         a Slurm of these hosts
sshd          an sshd on each of these hosts
"""
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
sys.path.append(str(FOLDER.parent))

from commands import CANNOT_RUN_HERE, HOST_FAILED, SKIPPED, TIMED_OUT, WRONG_USAGE, Failure  # noqa: E402, F401

SHARED = Path("/run/hosts")  # in a file system that the hosts share, as clusters do; nobody else sees it
OWN = SHARED / "own"  # folder of each host, which the others do not see
NETWORK = "10.77.0"


def name_of(host: int) -> str:
    return f"host{host}"


def address_of(host: int) -> str:
    return f"{NETWORK}.{host + 1}"
