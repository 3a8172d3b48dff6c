# SPDX-License-Identifier: Apache-2.0
"""What was asked for, and the order of things."""
import argparse
import os
import pwd
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from commands import Parser, cannot_run_here, ended, number

from . import WRONG_USAGE, DidNotBoot, Failure, image, machine, needs, session, snapshot
from .guest import Shape
from .job import Job

ABOUT = """Runs COMMAND on 1 to 4 small virtual hosts that have an RDMA device each, Linux's software RoCE, called rxe0,
and an Ethernet between them. Each sees this machine's root file system; what it writes is thrown away, except what it
writes to /out."""
STATUSES = """COMMAND finds SOFTROCE_HOST (0 to N-1), SOFTROCE_HOSTS (N) and SOFTROCE_ADDRESS0.. (of each host, IPv4).
Exit status: the first of COMMAND's, in the order of hosts, that is not 0. Otherwise 124 time is up, 125 a host failed,
2 wrong usage, 3 hosts cannot run here."""


Say = Callable[[str], None]


def user(name: str) -> str:
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        raise argparse.ArgumentTypeError(f"{name}: no such user") from None


def parser() -> Parser:
    made = Parser("softroce", "COMMAND", description=ABOUT, epilog=STATUSES)
    made.add_argument("--hosts", type=number(1, 4), default=1, metavar="N", help="how many, 1 to 4 (default 1)")
    made.add_argument("--cpus", type=number(1, 16), metavar="C", help="of each host (default 2 of one, 1 of several)")
    made.add_argument("--memory", type=number(256, 1 << 20), metavar="MiB",
                      help="of each host (default 2048 of one, 1024 of several)")
    made.add_argument("--timeout", type=number(1, 1 << 20, float), default=300, metavar="S",
                      help="ends all after so many seconds, the start included (default 300)")
    made.add_argument("--user", type=user, default="root", metavar="NAME",
                      help="who runs COMMAND; others than root without the right to lock any memory (default root)")
    made.add_argument("--memlock", type=number(0, 1 << 40), metavar="KiB",
                      help="how much memory it may lock (default no limit)")
    made.add_argument("--out", metavar="DIR",
                      help="a folder of this machine that is /out in each host (with --user, everyone may write to it)")
    made.add_argument("--accelerator", choices=["auto", "kvm", "tcg"], default="auto",
                      help="of the emulator: KVM, or none (tcg) (default: KVM where it works)")
    made.add_argument("--boot", action="store_true", help="boot the hosts; do not start them from a snapshot")
    made.add_argument("--quiet", action="store_true", help="print only what COMMAND prints, and errors")
    made.add_argument("--check", action="store_true", help="say in one line if hosts can run here, or what is missing")
    made.add_argument("--install", action="store_true", help="install what is missing (Debian; packages need root)")
    made.add_argument("--skip", action="store_true", help="exit with 77 where hosts cannot run, as a test does")
    return made


def parse(arguments: list[str]) -> argparse.Namespace:
    options = parser().parse(arguments)
    options.command = tuple(options.command)
    options.cpus = options.cpus or (2 if options.hosts == 1 else 1)
    options.memory = options.memory or (2048 if options.hosts == 1 else 1024)
    if not options.command and not options.check and not options.install:
        raise Failure("no command: softroce [options] -- COMMAND [ARGUMENT...] (see --help)", WRONG_USAGE)
    if "--" in arguments and not options.command:
        raise Failure("no command after --", WRONG_USAGE)
    return options


def check(options: argparse.Namespace) -> int:
    """Says in one line how it is; 0 if hosts can run."""
    if why := needs.missing():
        return cannot_run_here("softroce", why, options.skip)
    if not options.command:
        print(f"softroce: can run: {needs.description()}")
    return 0


def output_folder(name: str | None, who: str) -> Path | None:
    if name is None:
        return None
    try:
        os.makedirs(name, exist_ok=True)
        if who != "root":
            os.chmod(name, 0o1777)
    except OSError as error:
        raise Failure(f"--out {name}: {error.strerror}", WRONG_USAGE) from error
    return Path(name).absolute()


def run(options: argparse.Namespace, deadline: float) -> int:
    def say(what: str) -> None:
        if not options.quiet:
            print(f"softroce: {what}", file=sys.stderr, flush=True)

    out = output_folder(options.out, options.user)
    job = Job(options.command, options.hosts, options.user, options.memlock, out is not None)
    failure = None
    for shape, saved in ways_to_start(options, deadline, say):
        if failure:
            say(str(failure))
        try:
            return session.run(job, shape, out, saved, deadline, say)
        except DidNotBoot as error:
            failure = error
            if saved:
                snapshot.discard(saved)
    raise failure


def ways_to_start(options: argparse.Namespace, deadline: float, say: Say) -> Iterator[tuple[Shape, Path | None]]:
    """What to try, each should the one before fail: kinds of guests, of a snapshot or booted (None)."""
    for accelerator in machine.accelerators(options.accelerator):
        shape = Shape(accelerator, options.cpus, options.memory, image.boot_file(), image.initial_file_system())
        if accelerator == "tcg" and not options.boot:
            try:
                if not snapshot.find(shape):
                    say("the first start of hosts like these: one boots and is kept as a snapshot")
                yield shape, snapshot.find_or_make(shape, deadline)
            except Failure as failure:
                say(f"no snapshot: {failure}")
        yield shape, None


def stop(number: int, frame: object) -> NoReturn:
    """A signal ends softroce by the way of its cleaning up."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def answer(arguments: list[str], begin: float) -> int:
    options = parse(arguments)
    if options.install:
        needs.install()
    status = check(options)
    return run(options, begin + options.timeout) if status == 0 and options.command else status


def main(arguments: list[str]) -> int:
    begin = time.monotonic()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)
    return ended("softroce", lambda: answer(arguments, begin))
