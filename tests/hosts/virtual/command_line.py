# SPDX-License-Identifier: Apache-2.0
"""What was asked for. The world of hosts is a process of its own: it ends with this one, whatever ends this."""
import argparse
import json
import os
import signal
import subprocess
import sys
from typing import NoReturn

from commands import Parser, cannot_run_here, ended, number

from . import FOLDER, WRONG_USAGE, Failure, host, needs, world

ABOUT = """Runs the ranks of PROGRAM on 1 to 8 hosts that are namespaces of this machine: each has an address, a name,
processes and shared memory of its own, and a cable to one switch. They see this machine's files."""
STATUSES = """Faults happen once, when the text of --when (default: the first line) comes in what PROGRAM prints.
Exit status: that of the first rank that failed; 124 time is up, 125 a host failed, 2 wrong usage, 3 hosts cannot run
here. Ranks that --kill ends have not failed."""


def variable(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text}: must be NAME=VALUE")
    return text


def parser() -> Parser:
    made = Parser("hosts", "PROGRAM", description=ABOUT, epilog=STATUSES)
    add = made.add_argument
    add("--hosts", type=number(1, 8), default=2, metavar="N", help="how many (default 2)")
    add("-n", "--ranks", type=number(1, 256), metavar="N", help="on all hosts together (default 2 on each)")
    add("--start", choices=["tcp", "mpirun", "srun", "srun-pmi2", "sshd"], default="tcp",
        help="what starts the ranks: this script, telling each where they meet (tcp, the default), Open MPI's mpirun "
        "on the first host, or the srun of a Slurm of these hosts, by PMIx or by PMI-2; "
        "sshd: as tcp, and each host has an sshd (ssh -F /run/hosts/ssh_config)")
    add("--once", action="store_true", help="run PROGRAM once, on the first host, and not as ranks")
    add("-x", type=variable, action="append", default=[], metavar="NAME=VALUE", dest="variables",
        help="something for the environment of the ranks")
    add("--when", metavar="TEXT", help="faults wait for a line of output with this text")
    add("--cut", type=number(0, 7), metavar="HOST", help="pull the cable of a host")
    add("--for", type=number(0, 3600, float), metavar="S", dest="cut_s",
        help="put it back after so many seconds (default never)")
    add("--kill", type=number(0, 7), metavar="HOST", help="kill all processes of a host")
    add("--expect", type=number(0, 255), default=0, metavar="S", help="the status that is no failure (default 0)")
    add("--timeout", type=number(1, 1 << 20, float), default=300, metavar="S",
        help="ends all after so many seconds (default 300)")
    add("--quiet", action="store_true", help="print only what PROGRAM prints, and errors")
    add("--check", action="store_true", help="say in one line if hosts can run here, or what is missing")
    add("--install", action="store_true", help="install what is missing (Debian, root)")
    add("--skip", action="store_true", help="exit with 77 where hosts cannot run, as a test does")
    return made


def parse(arguments: list[str]) -> argparse.Namespace:
    options = parser().parse(arguments)
    options.ranks = options.ranks or 2 * options.hosts
    for name in ("cut", "kill"):
        if (getattr(options, name) or 0) >= options.hosts:
            raise Failure(f"--{name} {getattr(options, name)}: there are {options.hosts} hosts", WRONG_USAGE)
    if options.ranks < options.hosts:
        raise Failure(f"-n {options.ranks}: fewer ranks than hosts", WRONG_USAGE)
    if not options.command and not options.check and not options.install:
        raise Failure("no program: hosts [options] -- PROGRAM [ARGUMENT...] (see --help)", WRONG_USAGE)
    return options


def check(options: argparse.Namespace) -> int:
    """Says in one line how it is; 0 if hosts can run."""
    if why := needs.missing(options.start):
        return cannot_run_here("hosts", why, options.skip)
    if not options.command:
        print(f"hosts: can run, started by {options.start}")
    return 0


def run(options: argparse.Namespace) -> int:
    """Starts the world, and is as it is."""
    command = [*needs.unshare(*needs.as_root()), sys.executable, str(FOLDER / "hosts"), "--world",
               json.dumps(vars(options))]
    with subprocess.Popen(command, env={**os.environ, "PATH": needs.PATH}) as started:
        def end(signal_number: int, _: object) -> NoReturn:
            started.kill()
            raise SystemExit(128 + signal_number)

        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, end)
        status = started.wait()
        return status if status >= 0 else 128 - status


def answer(arguments: list[str]) -> int:
    if arguments[:1] == ["--host"]:
        return host.be(int(arguments[1]))
    if arguments[:1] == ["--world"]:
        return world.run(argparse.Namespace(**json.loads(arguments[1])))
    options = parse(arguments)
    if options.install:
        needs.install(options.start)
    status = check(options)
    return run(options) if status == 0 and options.command else status


def main(arguments: list[str]) -> int:
    return ended("hosts", lambda: answer(arguments))
