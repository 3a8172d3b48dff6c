# SPDX-License-Identifier: Apache-2.0
"""The world of the hosts: namespaces that they all are in. Here is the switch; here the job is started and watched, and
faults are made. When its first process ends, so does all of it."""
import argparse
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import (FOLDER, HOST_FAILED, OWN, SHARED, TIMED_OUT, Failure, address_of, door, launch, name_of, needs, slurm,
               sshd)

PATIENCE_S = 20  # until a host has started
GRACE_S = 5  # time in which the others have to find out by themselves that one has failed


def run_tool(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure(f"'{' '.join(words)}' failed: {done.stderr.strip()}", HOST_FAILED)


class Lines:
    """What one process prints, in whole lines, with the number of its host in front."""

    def __init__(self, host: int, to: int):
        self.prefix = f"{host}| ".encode()
        self.to = to
        self.reading, self.writing = os.pipe()
        self.rest = b""

    def fileno(self) -> int:
        return self.reading

    def take(self) -> list[bytes] | None:
        """The lines that are complete; None at the end."""
        data = os.read(self.reading, 65536)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        if not data and self.rest:
            lines.append(self.rest)
            self.rest = b""
        for line in lines:
            os.write(self.to, self.prefix + line + b"\n")
        return lines if data or lines else None


class World:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.deadline = time.monotonic() + options.timeout
        self.hosts: list[subprocess.Popen] = []
        self.selector = selectors.DefaultSelector()
        self.killed: set[int] = set()
        self.plug_at: float | None = None
        self.faults_left = options.cut is not None or options.kill is not None
        self.status = 0

    def build(self) -> None:
        run_tool("mount", "-t", "tmpfs", "run", "/run")
        OWN.mkdir(parents=True)
        names = "".join(f"{address_of(i)} {name_of(i)}\n" for i in range(self.options.hosts))
        (SHARED / "names").write_text("127.0.0.1 localhost\n" + names, encoding="ascii")
        run_tool("mount", "--bind", str(SHARED / "names"), "/etc/hosts")
        run_tool("ip", "link", "add", "name", "switch", "type", "bridge", "forward_delay", "0")
        run_tool("ip", "link", "set", "switch", "up")
        for number in range(self.options.hosts):
            self.hosts.append(subprocess.Popen(  # pylint: disable=consider-using-with
                [*needs.unshare(), sys.executable, str(FOLDER / "hosts"), "--host", str(number)],
                stdin=subprocess.DEVNULL))
        for number in range(self.options.hosts):
            self.connect(number)

    def connect(self, number: int) -> None:
        until = time.monotonic() + PATIENCE_S
        while not os.path.exists(door.path_of(name_of(number))):
            if self.hosts[number].poll() is not None or time.monotonic() > until:
                raise Failure(f"{name_of(number)} does not start", HOST_FAILED)
            time.sleep(0.01)
        # Its first process is the child of the process that made the namespaces.
        parent = self.hosts[number].pid
        first = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii").split()[0]
        port = f"port{number}"
        run_tool("ip", "link", "add", "name", port, "type", "veth", "peer", "name", "eth0", "netns", first)
        run_tool("ip", "link", "set", port, "master", "switch", "up")
        self.on(number, "ip", "address", "add", f"{address_of(number)}/24", "dev", "eth0")
        self.on(number, "ip", "link", "set", "eth0", "up")

    def on(self, number: int, *words: str) -> None:
        """Runs a tool on a host."""
        null = os.open(os.devnull, os.O_RDONLY)
        status = door.Command(name_of(number), list(words), dict(os.environ), (null, 2, 2)).status()
        os.close(null)
        if status != 0:
            raise Failure(f"'{' '.join(words)}' failed on {name_of(number)}", HOST_FAILED)

    def start(self) -> None:
        null = os.open(os.devnull, os.O_RDONLY)
        for each in launch.commands(self.options):
            out, err = Lines(each.host, 1), Lines(each.host, 2)
            command = door.Command(name_of(each.host), each.words, each.environment, (null, out.writing, err.writing))
            self.selector.register(command, selectors.EVENT_READ, each)
            for stream in (out, err):
                os.close(stream.writing)
                self.selector.register(stream, selectors.EVENT_READ, None)
        os.close(null)

    def running(self) -> list[selectors.SelectorKey]:
        return [key for key in self.selector.get_map().values() if isinstance(key.fileobj, door.Command)]

    def watch(self) -> int:
        while self.running():
            timers = [self.deadline] + ([self.plug_at] if self.plug_at is not None else [])
            for key, _ in self.selector.select(max(0.0, min(timers) - time.monotonic())):
                if isinstance(key.fileobj, Lines):
                    self.take_lines(key.fileobj)
                else:
                    self.selector.unregister(key.fileobj)
                    self.note_end(key.data, key.fileobj.status())
            if self.plug_at is not None and time.monotonic() >= self.plug_at:
                self.plug_at = None
                self.say(f"{name_of(self.options.cut)} has its cable back")
                run_tool("ip", "link", "set", f"port{self.options.cut}", "up")
            if time.monotonic() >= self.deadline:
                self.time_is_up()
        return self.finish()

    def take_lines(self, stream: Lines) -> None:
        lines = stream.take()
        if lines is None:
            self.selector.unregister(stream)
            os.close(stream.reading)
        elif self.faults_left and any((self.options.when or "").encode() in line for line in lines):
            self.faults_left = False
            self.make_faults()

    def make_faults(self) -> None:
        if self.options.cut is not None:
            self.say(f"{name_of(self.options.cut)} loses its cable")
            run_tool("ip", "link", "set", f"port{self.options.cut}", "down")
            if self.options.cut_s is not None:
                self.plug_at = time.monotonic() + self.options.cut_s
        if self.options.kill is not None:
            self.say(f"{name_of(self.options.kill)}: all processes are killed")
            self.killed.add(self.options.kill)
            door.ask(self.options.kill, "kill")

    def note_end(self, command: launch.Command, status: int) -> None:
        if status == 0 or self.status != 0 or command.host in self.killed:
            return
        self.status = status
        self.say(f"{command.what} on {name_of(command.host)} ended with status {status}")
        self.deadline = min(self.deadline, time.monotonic() + GRACE_S)

    def time_is_up(self) -> None:
        left = ", ".join(key.data.what for key in self.running())
        print(f"hosts: time is up for: {left}", file=sys.stderr, flush=True)
        self.status = self.status or TIMED_OUT
        self.deadline += PATIENCE_S
        for number in range(self.options.hosts):
            door.ask(number, "kill")

    def finish(self) -> int:
        """What the ranks have printed, and what they have left behind."""
        until = time.monotonic() + 2
        while (left := launch.left_behind(self.options)) and time.monotonic() < until:
            time.sleep(0.02)
        streams = [key.fileobj for key in self.selector.get_map().values()]
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
            try:
                while stream.take() is not None:
                    pass
            except BlockingIOError:
                pass
        for each in left:
            print(f"hosts: left behind: {each}", file=sys.stderr)
        if self.faults_left:
            print("hosts: the line that the faults wait for did not come", file=sys.stderr)
        if self.status != self.options.expect:
            return self.status or HOST_FAILED
        return HOST_FAILED if left or self.faults_left else 0

    def say(self, what: str) -> None:
        if not self.options.quiet:
            print(f"hosts: {what}", file=sys.stderr, flush=True)


def run(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    made = World(options)
    made.build()
    if options.start in slurm.STARTS:
        slurm.start(options.hosts)
    elif options.start == "sshd":
        sshd.start(options.hosts)
    made.start()
    return made.watch()
