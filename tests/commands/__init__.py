# SPDX-License-Identifier: Apache-2.0
"""What the commands that make hosts for tests have in common (tests/hosts, tests/softroce): how they take their
arguments, and how they say what is wrong."""
import argparse
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

# Exit statuses of the commands themselves; others are those of what they run.
WRONG_USAGE = 2
CANNOT_RUN_HERE = 3
SKIPPED = 77
TIMED_OUT = 124
HOST_FAILED = 125


class Failure(Exception):
    """The command itself cannot go on: why, in one line, and its exit status."""

    def __init__(self, why: str, status: int):
        super().__init__(why)
        self.status = status


class Parser(argparse.ArgumentParser):
    """Of options that are never abbreviated, and a description that is printed as it is."""

    def __init__(self, name: str, what: str, **texts: str):
        super().__init__(prog=name, usage=f"{name} [options] -- {what} [ARGUMENT...]", allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter, **texts)

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message} (see --help)", WRONG_USAGE)

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        """With what follows -- as `command`."""
        words, command = arguments, []
        if "--" in arguments:
            split = arguments.index("--")
            words, command = arguments[:split], arguments[split + 1:]
        options = self.parse_args(words)
        options.command = command
        return options


def number(lowest: float, highest: float, kind: type = int) -> Callable[[str], float]:
    def parse_number(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(f"{text}: must be a number from {lowest} to {highest}")
        return value
    return parse_number


def cannot_run_here(name: str, why: str, skip: bool) -> int:
    """Says so in one line; the exit status."""
    print(f"[skip] {name}: {why}" if skip else f"{name}: cannot run here: {why}")
    return SKIPPED if skip else CANNOT_RUN_HERE


def ended(name: str, run: Callable[[], int]) -> int:
    """The exit status of `run`, whatever becomes of it."""
    try:
        return run()
    except Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        return failure.status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
