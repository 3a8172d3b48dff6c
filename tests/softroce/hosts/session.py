# SPDX-License-Identifier: Apache-2.0
"""COMMAND on all hosts: starts them, passes its output on as it comes, and waits for its statuses."""
import contextlib
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from . import TIMED_OUT, DidNotBoot, snapshot
from .guest import Guest, Shape
from .job import Job

BOOT_LIMIT_S = {"kvm": 30, "tcg": 120}
SEND_LIMIT_S = 10
# A command that ended may have left processes that hold its output open.
SILENCE_LIMIT_S = 0.5


class Stream:
    """Output of one host's command. Lines of several hosts are not mixed, and say whose they are."""

    def __init__(self, to: BinaryIO, prefix: bytes):
        self.to, self.prefix = to, prefix
        self.partial = b""

    def write(self, text: bytes) -> None:
        if not self.prefix:
            self.put(text)
            return
        *lines, self.partial = (self.partial + text).split(b"\n")
        self.put(b"".join(self.prefix + line + b"\n" for line in lines))

    def end(self) -> None:
        if self.partial:
            self.put(self.prefix + self.partial + b"\n")
            self.partial = b""

    def put(self, text: bytes) -> None:
        self.to.write(text)
        self.to.flush()


class Host:
    """A guest, how far it has come, and what its command came to."""

    def __init__(self, guest: Guest, hosts: int):
        self.guest = guest
        self.state = "starting"
        self.status: int | None = None
        self.draining = 2
        self.heard_at = time.monotonic()
        self.partial = b""
        prefix = b"%d| " % guest.index if hosts > 1 else b""
        self.streams = {"out": Stream(sys.stdout.buffer, prefix), "err": Stream(sys.stderr.buffer, prefix)}

    def receive(self, channel: str) -> bool:
        """Takes what has come on a channel; false if no more will."""
        try:
            text = self.guest.channels[channel].recv(1 << 16)
        except ConnectionResetError:
            text = b""
        self.heard_at = time.monotonic()
        if channel == "console":
            self.guest.heard(text)
        elif channel in self.streams:
            self.streams[channel].write(text)
        elif text:
            *lines, self.partial = (self.partial + text).split(b"\n")
            for line in lines:
                self.is_told(*line.decode().split(maxsplit=1))
        else:
            raise self.guest.failure("died")
        return bool(text)

    def end_output(self) -> None:
        """What is still on its way, and a last line that was not ended."""
        for name, stream in self.streams.items():
            self.guest.channels[name].setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while self.receive(name):
                    pass
            stream.end()

    def is_told(self, word: str, rest: str = "") -> None:
        if word in ("ready", "prepared"):
            self.state = word
            self.guest.has_booted = True
        elif word == "status":
            self.status = int(rest)
        elif word == "drained":
            self.draining -= 1
        elif word == "failed":
            raise self.guest.failure(f"has {rest}")

    def tell(self, text: bytes) -> None:
        try:
            self.guest.channels["control"].sendall(text)
        except OSError as error:
            raise self.guest.failure("died") from error

    def is_finished(self) -> bool:
        silence_s = time.monotonic() - self.heard_at
        return self.status is not None and (self.draining == 0 or silence_s > SILENCE_LIMIT_S)


class Session:
    def __init__(self, guests: list[Guest], deadline: float):
        self.hosts = [Host(guest, len(guests)) for guest in guests]
        self.deadline = deadline
        self.selector = selectors.DefaultSelector()
        for host in self.hosts:
            for name in ("console", "control", "out", "err"):
                channel = host.guest.channels[name]
                channel.settimeout(SEND_LIMIT_S)
                self.selector.register(channel, selectors.EVENT_READ, (host, name))

    def pump(self, is_done: Callable[[Host], bool], deadline: float) -> bool:
        """Receives until it is done with each host, or (false) the deadline has come."""
        while not all(map(is_done, self.hosts)):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            for key, _ in self.selector.select(min(left_s, SILENCE_LIMIT_S / 2)):
                host, channel = key.data
                if not host.receive(channel):
                    self.selector.unregister(key.fileobj)
        return True

    def prepare(self, job: Job, boot_limit_s: float) -> bool:
        """Until all hosts wait for the word to go; false if time is up."""
        boot_deadline = time.monotonic() + boot_limit_s
        if not self.pump(lambda host: host.state == "ready", min(self.deadline, boot_deadline)):
            if boot_deadline < self.deadline:
                raise DidNotBoot(f"not all hosts booted within {boot_limit_s} s", TIMED_OUT)
            return False
        for host in self.hosts:
            host.tell(job.script(host.guest.index))
        return self.pump(lambda host: host.state == "prepared", self.deadline)

    def finish(self) -> bool:
        """Until the command has ended on all hosts; false if time is up."""
        for host in self.hosts:
            host.tell(b"go\n")
        try:
            return self.pump(Host.is_finished, self.deadline)
        finally:
            for host in self.hosts:
                host.end_output()

    def status(self) -> int:
        """The first of the command's statuses, in the order of hosts, that is not 0."""
        return next((host.status for host in self.hosts if host.status), 0)

    def unfinished(self) -> str:
        return ", ".join(str(host.guest.index) for host in self.hosts if host.status is None)


@contextlib.contextmanager
def started(shape: Shape, hosts: int, out: Path | None, saved: Path | None) -> Iterator[list[Guest]]:
    """Guests with an Ethernet between them, of a snapshot if there is one."""
    with contextlib.ExitStack() as cleanup:
        # Host 0 has the hub, all others have a cable to it.
        cables = [tuple(map(cleanup.enter_context, socket.socketpair())) for _ in range(hosts - 1)]
        links = [[near for near, _ in cables], *([far] for _, far in cables)]
        guests = []
        more = snapshot.arguments(shape, saved) if saved else ()
        for index in range(hosts):
            guests.append(Guest(index, shape, links[index], out, more))
            cleanup.callback(guests[-1].kill)
        if saved:
            snapshot.wake(guests, saved)
        yield guests


def run(job: Job, shape: Shape, out: Path | None, saved: Path | None, deadline: float,
        say: Callable[[str], None]) -> int:
    """The exit status."""
    begin = time.monotonic()
    with started(shape, job.hosts, out, saved) as guests:
        session = Session(guests, deadline)
        if saved:
            for host in session.hosts:
                host.is_told("ready")
        if not session.prepare(job, BOOT_LIMIT_S[shape.accelerator]):
            say("time is up, and not all hosts had started")
            return TIMED_OUT
        say(f"{job.hosts} host{'s' if job.hosts > 1 else ''} ready after {time.monotonic() - begin:.1f} s")
        if not session.finish():
            say(f"time is up; the command was still running on host {session.unfinished()}"
                + "".join(guest.console() for guest in guests))
            return TIMED_OUT
        return session.status()
