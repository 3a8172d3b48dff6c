#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""softroce_test.py Options | Start: tests of softroce, without and with hosts.

Options  what is wrong or missing is said in one line and by the exit status; the parts that need no host
Start    real starts of one and of two hosts; exits with 77 where they cannot run
"""
import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

FOLDER = Path(__file__).resolve().parent
SOFTROCE = FOLDER / "softroce"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))

from hosts import SKIPPED, TIMED_OUT, image, job, session  # noqa: E402  (after the path that they are found by)

from commands import expected  # noqa: E402


def softroce(*words, **settings):
    """What a call came to, with some environment variables set to something else."""
    return subprocess.run([sys.executable, SOFTROCE, *words], capture_output=True, text=True, check=False,
                          env={**os.environ, **settings})


class Options(unittest.TestCase):
    def test_what_is_wrong_is_said_in_one_line(self):
        cases = (
            (["--hosts", "5", "--", "true"], "from 1 to 4"),
            (["--hosts", "two", "--", "true"], "must be a number"),
            (["--cpus", "0", "--", "true"], "--cpus"),
            (["--memory", "1", "--", "true"], "--memory"),
            (["--timeout", "0", "--", "true"], "--timeout"),
            (["--timeout", "nan", "--", "true"], "--timeout"),
            (["--memlock", "-1", "--", "true"], "--memlock"),
            (["--user", "no such", "--", "true"], "no such user"),
            (["--accelerator", "steam", "--", "true"], "steam"),
            (["--host", "2", "--", "true"], "--host"),
            (["true"], "true"),
            (["--"], "no command"),
            (["--check", "--"], "no command"),
            ([], "no command"),
        )
        expected.refusals(self, "softroce", softroce, cases)

    def test_what_is_missing_is_said(self):
        with tempfile.TemporaryDirectory() as empty:
            expected.lacks(self, "softroce", softroce, ["qemu-system-x86", f"a kernel in {empty}", "--install"],
                           PATH=empty, XDG_CACHE_HOME=empty)
            self.assertEqual(os.listdir(empty), [], "something was made")

    def test_help(self):
        done = softroce("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("--hosts", "--memlock", "SOFTROCE_ADDRESS0", "/out"):
            self.assertIn(word, done.stdout)


class Parts(unittest.TestCase):
    def test_the_command_arrives_as_it_was_given(self):
        words = ("printf", "%s|", "a b", "it's", "$HOME", "", "line\nline", "*")
        with mock.patch.dict(os.environ, {"RMA_TEXT": "'\n$x\udcff", "TMPDIR": "/x"}):
            script = job.Job(words, hosts=2, user="root", memlock_kib=64, has_out=False).command_script(1)
        run = ["/bin/sh", "-c", script.replace("exec printf", "ulimit -l; env -0; exec printf").encode(
            errors="surrogateescape")]
        done = subprocess.run(run, capture_output=True, check=True, env={})
        head, *variables, said = done.stdout.split(b"\0")
        self.assertEqual(said, "|".join(words[2:]).encode() + b"|")
        limit, first = head.split(b"\n", 1)
        self.assertEqual(limit, b"64")
        variables.append(first)
        for variable in (b"RMA_TEXT='\n$x\xff", b"SOFTROCE_HOST=1", b"SOFTROCE_HOSTS=2",
                         f"SOFTROCE_ADDRESS1={job.NETWORK}.2".encode(), b"HOME=/root"):
            self.assertIn(variable, variables)
        self.assertFalse([variable for variable in variables if variable.startswith(b"TMPDIR=")])

    def test_another_user_has_no_right_to_lock_memory(self):
        script = job.Job(("true",), hosts=1, user="nobody", memlock_kib=None, has_out=False).command_script(0)
        self.assertIn("setpriv --reuid=nobody", script)
        self.assertIn("--bounding-set=-ipc_lock", script)
        self.assertIn("ulimit -l unlimited", script)

    def test_lines_of_several_hosts_are_whole_and_prefixed(self):
        with tempfile.TemporaryFile() as file:
            streams = [session.Stream(file, b"%d| " % host) for host in range(2)]
            for host, text in ((0, b"on"), (1, b"two\nth"), (0, b"e\n\n"), (1, b"ree")):
                streams[host].write(text)
            for stream in streams:
                stream.end()
            file.seek(0)
            self.assertEqual(file.read(), b"1| two\n0| one\n0| \n1| three\n")

    def test_an_archive_is_what_the_kernel_unpacks(self):
        archive = image.Archive()
        archive.add("a", 0o040755)
        archive.add("a/file", 0o100644, b"12345")
        data = archive.finished()
        self.assertEqual(len(data) % 4, 0)
        headers = [data[at:at + 110] for at in range(len(data)) if data.startswith(b"070701", at)]
        self.assertEqual([int(header[54:62], 16) for header in headers], [0, 5, 0])
        self.assertIn(b"a/file\0" + bytes(3) + b"12345", data)


class Start(unittest.TestCase):
    def test_one_host(self):
        with tempfile.TemporaryDirectory() as out:
            script = ("ibv_devinfo -d rxe0; id -un; ulimit -l; grep CapBnd /proc/self/status; hostname; pwd;"
                      "echo written >/out/file; echo wrong >/dev/stderr; (sleep 1000) & exit 3")
            done = softroce("--quiet", "--out", out, "--user", "nobody", "--memlock", "64", "--timeout", "200", "--",
                            "sh", "-c", script)
            self.assertEqual((done.returncode, done.stderr), (3, "wrong\n"), done)
            *device, user, limit, rights, host, folder = done.stdout.splitlines()
            self.assertIn("PORT_ACTIVE", "".join(device))
            self.assertEqual((user, limit, host, folder), ("nobody", "64", "host0", os.getcwd()))
            self.assertEqual(int(rights.split()[1], 16) & 1 << 14, 0, "CAP_IPC_LOCK")
            self.assertEqual((Path(out) / "file").read_text(encoding="utf-8"), "written\n")

    def test_two_hosts_reach_each_other(self):
        # The second one waits for the first by TCP, then both use the device.
        script = """
          if [ $SOFTROCE_HOST = 0 ]; then
            ibv_rc_pingpong -d rxe0 -g 1 -n 20
          else
            until ibv_rc_pingpong -d rxe0 -g 1 -n 20 $SOFTROCE_ADDRESS0 2>/dev/null; do :; done
          fi
          exit $((SOFTROCE_HOST * 5))"""
        done = softroce("--hosts", "2", "--timeout", "200", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 5, done)
        for host in ("0", "1"):
            self.assertRegex(done.stdout, rf"(?m)^{host}\| 20 iters in ")
        self.assertIn("softroce: 2 hosts ready after", done.stderr)

    def test_nothing_is_left_when_time_is_up_or_a_signal_comes(self):
        done = softroce("--timeout", "5", "--", "sh", "-c", "echo begun; sleep 1000")
        self.assertEqual((done.returncode, "time is up" in done.stderr), (TIMED_OUT, True), done)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            command = [sys.executable, SOFTROCE, "--quiet", "--", "sh", "-c", "echo begun; sleep 1000"]
            with self.subTest(signal=number), subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                self.assertEqual(process.stdout.readline(), "begun\n")
                guests = children_of(process.pid)
                self.assertEqual(len(guests), 1)
                process.send_signal(number)
                self.assertEqual(process.wait(), -number if number == signal.SIGKILL else 128 + number)
                for guest in guests:
                    ended, _, _ = select.select([guest], [], [], 10)
                    os.close(guest)
                    self.assertEqual(ended, [guest], "a guest is left")


def children_of(pid):
    """Handles of the processes that a process has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    return [os.pidfd_open(int(child)) for child in listed.split()]


def main():
    if "Start" in sys.argv[1:]:
        checked = softroce("--skip", "--check")
        print(checked.stdout, end="")
        if checked.returncode != 0:
            return checked.returncode
    tests = unittest.main(exit=False)
    return 0 if tests.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
