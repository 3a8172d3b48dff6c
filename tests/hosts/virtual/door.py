# SPDX-License-Identifier: Apache-2.0
"""The way into a host: a Unix socket in the file system that all hosts share. Who connects hands over a command and
its three streams, and is told how it ended; who hangs up ends it."""
import json
import os
import selectors
import signal
import socket
import subprocess
from pathlib import Path

from . import SHARED, name_of

REQUEST_BYTES_MAX = 1 << 17


def path_of(host: str) -> str:
    return str(SHARED / host / "door")


class Command:
    """A command that runs on a host; `fileno` is readable when it has ended."""

    def __init__(self, host: str, words: list[str], environment: dict[str, str], streams: tuple[int, int, int]):
        request = json.dumps({"words": words, "environment": environment, "folder": os.getcwd()}).encode()
        self.socket = connect(host)
        socket.send_fds(self.socket, [request], streams)

    def fileno(self) -> int:
        return self.socket.fileno()

    def status(self) -> int:
        """Waits for the end. As a shell says it; 137 if the host itself is gone."""
        said = self.socket.recv(100)
        self.socket.close()
        return int(said) if said else 128 + signal.SIGKILL

    def end(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)


def connect(host: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.connect(path_of(host))
    return made


def ask(host: int, what: str) -> str:
    """`kill` ends all processes of the host; `list` names them."""
    with connect(name_of(host)) as made:
        made.send(json.dumps({"ask": what}).encode())
        return made.recv(REQUEST_BYTES_MAX).decode()


def processes() -> list[str]:
    """What runs on this host, besides the first process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if words and folder.name != "1":  # a process that has ended and was not waited for has no words
            found.append(words)
    return found


class Door:
    """The first process of a host: starts what comes in by the socket, and waits for all that ends."""

    def __init__(self, host: str):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path_of(host))
        self.listener.listen(64)
        self.running: dict[int, socket.socket] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        ended, wake = socket.socketpair()
        ended.setblocking(False)
        wake.setblocking(False)
        self.ended, self.wake = ended, wake
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake.fileno())
        self.selector.register(ended, selectors.EVENT_READ, None)

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    self.let_in(self.listener.accept()[0])
                elif key.fileobj is self.ended:
                    self.ended.recv(4096)
                    self.wait_for_ended()
                else:
                    self.hang_up(key.data)

    def let_in(self, caller: socket.socket) -> None:
        said, streams, _, _ = socket.recv_fds(caller, REQUEST_BYTES_MAX, 3)
        request = json.loads(said)
        if "ask" in request:
            if request["ask"] == "kill":
                os.kill(-1, signal.SIGKILL)
            caller.send("\n".join(processes()).encode() or b"\n")
            caller.close()
            return
        try:
            started = subprocess.Popen(  # pylint: disable=consider-using-with
                request["words"], env=request["environment"], cwd=request["folder"], start_new_session=True,
                stdin=streams[0], stdout=streams[1], stderr=streams[2])
        except OSError as error:
            os.write(streams[2], f"{request['words'][0]}: {error.strerror}\n".encode())
            caller.send(b"127")
            caller.close()
        else:
            started.returncode = 0  # it is waited for here
            self.running[started.pid] = caller
            self.selector.register(caller, selectors.EVENT_READ, started.pid)
        for stream in streams:
            os.close(stream)

    def wait_for_ended(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if caller := self.running.pop(pid, None):
                code = os.waitstatus_to_exitcode(status)
                if caller in self.selector.get_map():
                    self.selector.unregister(caller)
                try:
                    caller.send(str(code if code >= 0 else 128 - code).encode())
                except BrokenPipeError:
                    pass
                caller.close()

    def hang_up(self, pid: int) -> None:
        """The caller is gone, or wants it to end."""
        if pid in self.running:
            self.selector.unregister(self.running[pid])  # its end is still told
            os.killpg(pid, signal.SIGKILL)
