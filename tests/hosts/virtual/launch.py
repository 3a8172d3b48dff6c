# SPDX-License-Identifier: Apache-2.0
"""Ways to start the ranks of a job."""
import argparse
import os
import secrets
from dataclasses import dataclass

from . import FOLDER, OWN, address_of, door, name_of, slurm, sshd

PORT = 5610


@dataclass
class Command:
    """What runs on a host."""
    what: str
    host: int
    words: list[str]
    environment: dict[str, str]


def commands(options: argparse.Namespace) -> list[Command]:
    environment = {**os.environ, "RMA_LOCAL_RANKS": str(options.ranks)}  # the hosts share this machine's processors
    environment.update(pair.split("=", 1) for pair in options.variables)
    if options.once:
        return [Command(options.command[0], 0, options.command, environment)]
    if options.start == "mpirun":
        return [Command("mpirun", 0, mpirun(options, environment) + options.command, environment)]
    if options.start in slurm.STARTS:
        environment.update(slurm.ENVIRONMENT[options.start])
        return [Command("srun", 0, slurm.srun(options) + options.command, environment)]
    return by_tcp(options, environment)


def host_of(rank: int, options: argparse.Namespace) -> int:
    """In the order of hosts, as many on each; if that does not divide, one more on the first."""
    return rank * options.hosts // options.ranks


def by_tcp(options: argparse.Namespace, environment: dict[str, str]) -> list[Command]:
    job = {"RMA_BOOT": f"tcp://{address_of(0)}:{PORT}", "RMA_SIZE": str(options.ranks),
           "RMA_KEY": secrets.token_hex(32), **environment}
    return [Command(f"rank {rank}", host_of(rank, options), options.command, {**job, "RMA_RANK": str(rank)})
            for rank in range(options.ranks)]


def mpirun(options: argparse.Namespace, environment: dict[str, str]) -> list[str]:
    """The hosts have no sshd: Open MPI's agent for other hosts goes through their doors."""
    per_host = -(-options.ranks // options.hosts)
    hosts = ",".join(f"{name_of(i)}:{per_host}" for i in range(options.hosts))
    words = ["mpirun.openmpi", "--allow-run-as-root", "--host", hosts, "-n", str(options.ranks), "--map-by", "slot",
             "--mca", "orte_tmpdir_base", str(OWN), "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
             str(FOLDER / "enter"), "--mca", "oob_tcp_if_include", "eth0", "--mca", "btl", "tcp,self", "--mca", "pml",
             "ob1", "--mca", "btl_tcp_if_include", "eth0"]
    for name in environment:
        if name.startswith(("RMA_", "UCX_")):
            words += ["-x", name]
    return words


def left_behind(options: argparse.Namespace) -> list[str]:
    """Processes that run on the hosts, but for Slurm's and sshd."""
    found = []
    for host in range(options.hosts):
        for words in door.ask(host, "list").split("\n"):
            if words and not slurm.is_daemon(words) and not sshd.is_daemon(words):
                found.append(f"{name_of(host)}: {words}")
    return found
