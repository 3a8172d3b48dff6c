#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hosts_test.py Options | Start: tests of `hosts`, without and with hosts.

Options  what is wrong or missing is said in one line and by the exit status
Start    real starts; exits with 77 where they cannot run
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HOSTS = FOLDER / "hosts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))

from virtual import HOST_FAILED, SKIPPED, TIMED_OUT  # noqa: E402  (after the path that they are found by)

from commands import expected  # noqa: E402


def hosts(*words, **settings):
    """What a call came to, with some environment variables set to something else."""
    return subprocess.run([sys.executable, HOSTS, *words], capture_output=True, text=True, check=False,
                          env={**os.environ, **settings}, timeout=60)


class Options(unittest.TestCase):
    def test_what_is_wrong_is_said_in_one_line(self):
        cases = (
            (["--hosts", "9", "--", "true"], "from 1 to 8"),
            (["--hosts", "two", "--", "true"], "must be a number"),
            (["--start", "magic", "--", "true"], "magic"),
            (["--hosts", "3", "-n", "2", "--", "true"], "fewer ranks than hosts"),
            (["--cut", "2", "--", "true"], "there are 2 hosts"),
            (["-x", "NAME", "--", "true"], "NAME=VALUE"),
            (["--timeout", "0", "--", "true"], "--timeout"),
            (["true"], "true"),
            (["--"], "no program"),
            ([], "no program"),
        )
        expected.refusals(self, "hosts", hosts, cases)

    def test_what_is_missing_is_said(self):
        with tempfile.TemporaryDirectory() as empty:
            for each in ("setpriv", "ip"):  # not all machines have ip
                (Path(empty) / each).write_text("#!/bin/sh\necho 'unshare: Operation not permitted' >&2; exit 1\n")
                (Path(empty) / each).chmod(0o755)
            path = f"{empty}:{os.environ['PATH']}:/usr/sbin:/sbin"
            expected.lacks(self, "hosts", hosts, ["not permitted"], PATH=path)

    def test_help(self):
        done = hosts("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("--hosts", "--cut", "--kill", "--start", "124"):
            self.assertIn(word, done.stdout)


class Start(unittest.TestCase):
    def test_each_host_is_one_of_its_own(self):
        show = ("hostname; cat /etc/hostname; ip -4 -o address show eth0 | grep -o '10[.0-9]*'; ls /dev/shm; "
                "touch /dev/shm/mine; echo rank $RMA_RANK of $RMA_SIZE at $RMA_BOOT, $RMA_LOCAL_RANKS on this machine")
        done = hosts("--hosts", "3", "-n", "3", "--quiet", "--", "sh", "-c", show)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        expected = [line for i in range(3) for line in (
            f"{i}| host{i}", f"{i}| host{i}", f"{i}| 10.77.0.{i + 1}",
            f"{i}| rank {i} of 3 at tcp://10.77.0.1:5610, 3 on this machine")]
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(expected))

    def test_ranks_are_spread_in_order(self):
        done = hosts("--hosts", "2", "-n", "5", "--quiet", "--", "sh", "-c", "echo $RMA_RANK")
        self.assertEqual(sorted(done.stdout.splitlines()), ["0| 0", "0| 1", "0| 2", "1| 3", "1| 4"])

    def test_statuses(self):
        for script, options, status, said in (
                ("exit $((3 * RMA_RANK))", ["--hosts", "2", "-n", "2"], 3, "rank 1 on host1 ended with status 3"),
                ("kill -9 $$", ["-n", "2"], 137, "status 137"),
                ("kill -9 $$", ["-n", "2", "--expect", "137"], 0, "status 137"),
                ("exit 0", ["--expect", "137"], HOST_FAILED, ""),
                ("sleep 1000", ["--timeout", "1"], TIMED_OUT, "time is up for: rank 0, rank 1, rank 2, rank 3"),
                ("setsid sleep 1000 & exit 0", [], HOST_FAILED, "left behind: host1: sleep 1000"),
                ("echo hello", ["--cut", "1", "--when", "good-bye"], HOST_FAILED, "did not come"),
                ("no-such-program", ["-n", "2"], 127, "no-such-program")):
            with self.subTest(script=script):
                command = ["no-such-program"] if script == "no-such-program" else ["sh", "-c", script]
                done = hosts(*options, "--", *command)
                self.assertEqual(done.returncode, status, done)
                self.assertIn(said, done.stderr)

    def test_faults_come_when_they_are_asked_for(self):
        wait = "echo ready; until grep -q down /sys/class/net/eth0/operstate; do :; done; echo dark; " \
               "until grep -q up /sys/class/net/eth0/operstate; do :; done; echo light"
        done = hosts("--when", "ready", "--cut", "1", "--for", "0.1", "--", "sh", "-c",
                     f"case $RMA_RANK in 3) {wait};; esac")
        self.assertEqual((done.returncode, done.stdout), (0, "1| ready\n1| dark\n1| light\n"), done)
        done = hosts("--when", "ready", "--kill", "1", "--", "sh", "-c",
                     "case $RMA_RANK in 3) echo ready; sleep 1000;; 2) sleep 1000;; esac")
        self.assertEqual((done.returncode, done.stdout), (0, "1| ready\n"), done)

    def test_nothing_outlives_it(self):
        """Whatever ends it, all its processes end: they are the only ones that could write to this pipe."""
        before = sorted(os.listdir("/sys/class/net"))
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                reading, writing = os.pipe()
                with subprocess.Popen([sys.executable, HOSTS, "--", "sh", "-c", "echo; setsid sleep 1000 & sleep 1000"],
                                      stdout=writing, stderr=subprocess.DEVNULL) as started:
                    os.close(writing)
                    self.assertIn(b"\n", os.read(reading, 100))
                    started.send_signal(number)
                    self.assertNotEqual(started.wait(), 0)
                while os.read(reading, 1000):  # until nobody has it any more
                    pass
                os.close(reading)
                self.assertEqual(sorted(os.listdir("/sys/class/net")), before)


if __name__ == "__main__":
    if sys.argv[1:2] == ["Start"]:
        ready = hosts("--check", "--skip")
        if ready.returncode == SKIPPED:
            print(ready.stdout, end="")
            sys.exit(SKIPPED)
    unittest.main(verbosity=1)
