# SPDX-License-Identifier: Apache-2.0
"""Programs that are compared, run by run: all are there at once, but only one of them may run at any time. Each says
before a run that it waits for its turn, and what it is going to measure (--in-turn). Then it is stopped, ranks that
wait by spinning included, until all others had theirs. What changes the machine's speed for seconds or minutes then
meets all of them.

    start --- until its first "turn" ---> stopped --- go, one run, until the next "turn" ---> stopped ... ended
"""
import os
import select
import signal
import subprocess
import tempfile
import time

TURN = b"turn"
TOO_LATE = "no end in time"


def status_of(process):
    """(state, parent) as the kernel tells them; nothing if it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            state, parent = file.read().rsplit(")", 1)[1].split()[:2]
            return state, int(parent)
    except OSError:
        return None


def descendants(ancestor):
    """The process and all that came of it."""
    children = {}
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if status := status_of(process):
            children.setdefault(status[1], []).append(process)
    found = [ancestor]
    for process in found:
        found += children.get(process, [])
    return found


def runs(process):
    status = status_of(process)
    return status is not None and status[0] not in "TZX"


class Player:
    """One program. It runs from its construction on; `until_turn` stops it."""

    def __init__(self, command, environment, seconds):
        self.status, self.words, self.line = None, "", b""
        self.point = b""  # the point that its next run measures
        self.seconds = seconds  # that it may run; what it waits for the others does not count
        self.errors = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            env=environment, start_new_session=True)
        except OSError:
            self.errors.close()
            raise
        self.processes = [self.process.pid]

    def go(self):
        """One run is its own."""
        self.signal(signal.SIGCONT)
        try:
            os.write(self.process.stdin.fileno(), b"go\n")
        except OSError:
            pass  # it has ended; `until_turn` sees how

    def until_turn(self):
        """Returns when it has stopped, or ended: then it has a status."""
        end = time.monotonic() + self.seconds
        while (lines := self.lines(end - time.monotonic())) is not None:
            if turns := [line for line in lines if line.split(b" ", 1)[0] == TURN]:
                self.point = turns[-1]
                self.stop()
                self.seconds = end - time.monotonic()
                return
        try:
            self.status = self.process.wait(max(end - time.monotonic(), 0))
            self.errors.seek(0)
            self.words = self.errors.read().decode(errors="replace")
        except subprocess.TimeoutExpired:
            self.kill()
            self.status, self.words = self.process.returncode, TOO_LATE

    def lines(self, seconds):
        """What it prints next; nothing if it has no more to say, or no time."""
        stream = self.process.stdout.fileno()
        text = os.read(stream, 65536) if select.select([stream], [], [], max(seconds, 0))[0] else b""
        *whole, self.line = (self.line + text).split(b"\n")
        return whole if text else None

    def stop(self):
        self.processes = descendants(self.process.pid)
        self.signal(signal.SIGSTOP)
        while any(map(runs, self.processes)):  # on another core it takes a moment
            os.sched_yield()

    def signal(self, number):
        for process in self.processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    def kill(self):
        """In whatever state it is."""
        if self.process.poll() is None:
            self.processes = descendants(self.process.pid)
            self.signal(signal.SIGKILL)
            self.process.wait()


def whose_turn(players, leader):
    """All who are at the point of the leader, which comes to every point of the others in their order; what it has for
    itself it measures alone. All who still run if it does not, or if there is no leader."""
    active = [player for player in players if player.status is None]
    if leader is None or players[leader].status is not None:
        return active
    return [player for player in active if player.point == players[leader].point]


def play(commands, environment, seconds, leader=None):
    """Lets them have their turns, in this order, until all have ended. [(exit status, its last words)]"""
    players = []
    try:
        for command in commands:
            players.append(Player([*command, "--in-turn"], environment, seconds))
            players[-1].until_turn()
        while turns := whose_turn(players, leader):
            for player in turns:
                player.go()
                player.until_turn()
    finally:
        for player in players:
            player.kill()
            player.errors.close()
            player.process.stdin.close()
            player.process.stdout.close()
    return [(player.status, player.words) for player in players]
