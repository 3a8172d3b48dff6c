#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rma_sim_test.py RMA_SIM SIM_PROGRAM: what rma-sim says and returns, for good and for bad input."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

RMA_SIM, PROGRAM = sys.argv[1:3]


def run(*arguments):
    """Exit status, standard output, standard error."""
    done = subprocess.run([RMA_SIM, *arguments], capture_output=True, text=True, timeout=50, check=False)
    return done.returncode, done.stdout, done.stderr


class BadInput(unittest.TestCase):
    """One clear line, and exit status 2."""

    def refused(self, expected, *arguments):
        status, out, errors = run(*arguments)
        self.assertEqual((status, out), (2, ""), (arguments, errors))
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertTrue(errors.startswith("rma-sim: "), errors)
        self.assertIn(expected, errors)

    def test_options(self):
        self.refused("which program", "-n", "2")
        self.refused("which program")
        self.refused("unknown option '--nothing'", "--nothing", PROGRAM)
        for value in ("0", "-1", "x", "1.5", "99999999999999"):
            self.refused("--ranks", "-n", value, PROGRAM)
        self.refused("--ranks-per-node", "--ranks-per-node", "-3", PROGRAM)
        self.refused("--seed", "--seed", "x", PROGRAM)
        for value in ("", "1", "x@1us", "1@", "1@5", "1@5h", "1@-5us", "1@1e99s", "@1us"):
            self.refused("--kill", "-n", "2", "--kill", value, PROGRAM)
        self.refused("ranks count from 0 to 1", "-n", "2", "--kill", "2@1us", PROGRAM)
        for value in ("0s", "5", "x"):
            self.refused("--limit", "--limit", value, PROGRAM)
        for value in ("x", "1", "16383", "2000M", "-1", "64Q"):
            self.refused("--stack", "--stack", value, PROGRAM)

    def test_environment(self):
        self.refused("the name is missing", "-x", "=1", PROGRAM)
        self.refused("RMA_RANK", "-x", "RMA_RANK=1", PROGRAM)
        self.refused("not set here", "-x", "NOT_SET_ANYWHERE", PROGRAM)

    def test_machine(self):
        self.refused("nothing", "--params", "nothing", PROGRAM)
        self.refused("/not/there", "--params", "/not/there", PROGRAM)
        self.refused("nothing", "-n", "4", "--ranks-per-node", "1", "--topology", "nothing", PROGRAM)

    def test_programs(self):
        self.refused("there is no such program", "./not_there")
        self.refused("there is no such program", "not_there_in_the_path")
        self.refused("it has no module", "/bin/sh")
        with tempfile.TemporaryDirectory() as folder:
            broken = os.path.join(folder, "broken.so")
            with open(broken, "w", encoding="utf-8") as file:
                file.write("no module\n")
            self.refused("cannot be loaded", broken)


class Endings(unittest.TestCase):
    def test_every_rank_runs(self):
        status, out, errors = run("-n", "3", "-x", "SIM_PROGRAM=text", PROGRAM, "environment")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(sorted(out.split("\n")), ["", "3 ranks: environment", "text", "text", "text"])

    def test_module_by_its_name(self):
        module = os.path.join(os.path.dirname(PROGRAM), "sim", os.path.basename(PROGRAM) + ".so")
        self.assertEqual(run("-n", "2", module, "x"), (0, "2 ranks: x\n", ""))
        self.assertEqual(run("-n", "2", "--", module, "x"), (0, "2 ranks: x\n", ""))

    def test_statuses(self):
        for way, status, said in (("return", 7, "rank 2 ended with 7"), ("exit", 8, "rank 2 ended with 8"),
                                  ("_Exit", 9, "rank 2 ended with 9"),
                                  ("throw", 1, "rank 2 ended by an exception: no more")):
            self.assertEqual(run("-n", "3", PROGRAM, way), (status, f"3 ranks: {way}\n", f"rma-sim: {said}\n"))
        status, _, errors = run("-n", "3", PROGRAM, "abort")
        self.assertEqual((status, errors), (10, "rma-sim: rank 2 aborted the job: enough\n"))
        self.assertEqual(run("-n", "2", PROGRAM, "early")[0], 4)

    def test_deadlock(self):
        status, out, errors = run("-n", "3", PROGRAM, "deadlock")
        self.assertEqual((status, out), (2, "3 ranks: deadlock\n"))
        self.assertIn("deadlock", errors)
        for rank in range(3):
            self.assertIn(f"rank {rank} waits in wait_signal", errors)

    @unittest.skipUnless(shutil.which("addr2line") and shutil.which("strip"), "needs addr2line and strip")
    def test_deadlock_names_the_calls(self):
        """File and line where the program has debug information, function and offset where not."""
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sim_program.cpp")
        with open(source, encoding="utf-8") as file:
            line = 1 + next(i for i, text in enumerate(file) if "win.wait_signal(0);" in text)
        errors = run("-n", "2", PROGRAM, "deadlock")[2]
        for rank in range(2):
            self.assertRegex(errors, rf"rank {rank} waits in wait_signal, "
                             rf"called at \S*/sim_program.cpp:{line} \(.*wait_for")
        with tempfile.TemporaryDirectory() as folder:
            module = os.path.join(os.path.dirname(PROGRAM), "sim", os.path.basename(PROGRAM) + ".so")
            bare = os.path.join(folder, "bare.so")
            for option in ("--strip-debug", "--strip-all"):  # inlined into main or not
                subprocess.run(["strip", option, "-o", bare, module], check=True)
                self.assertRegex(run("-n", "2", bare, "deadlock")[2], r"rank 0 waits in wait_signal, called at "
                                 r"(.* in bare.so\+0x|bare.so\+0x|main\+0x[0-9a-f]+ in bare.so)")

    def test_kill(self):
        status, _, errors = run("-n", "4", "--kill", "2@20ms", PROGRAM, "death")
        self.assertEqual((status, errors), (0, "rma-sim: rank 2 was killed at 20000000 ns\n"))

    def test_limit(self):
        status, _, errors = run("-n", "2", "--limit", "3ms", PROGRAM, "death")
        self.assertEqual(status, 2)
        self.assertIn("the time is up", errors)

    def test_same_run_twice(self):
        first = run("-n", "9", "--report", "-x", "RMA_PROGRESS_THREAD=1", PROGRAM, "now")
        self.assertEqual(first[0], 0)
        self.assertIn("s of virtual time", first[2])
        self.assertEqual(first, run("-n", "9", "--report", "-x", "RMA_PROGRESS_THREAD=1", PROGRAM, "now"))

    def test_report_later(self):
        """What the run shows, and what is made of its file, are the same; garbled files are refused."""
        with tempfile.TemporaryDirectory() as folder:
            record, now, later = (os.path.join(folder, name) for name in ("run.json", "now.svg", "later.svg"))
            status, _, errors = run("-n", "9", "--ranks-per-node", "2", "--faults", "--report", "--json", record,
                                    "--heat-map", now, PROGRAM, "traffic")
            self.assertEqual(status, 0, errors)
            self.assertIn("busiest links", errors)
            self.assertEqual(run("report", record), (0, errors.replace("rma-sim: ", ""), ""))
            self.assertEqual(run("report", record, "--heat-map", later), (0, "", ""))
            self.assertEqual(run("report", record, "--heat-map", later, "--text")[1], errors.replace("rma-sim: ", ""))
            with open(record, encoding="utf-8") as file:
                good = file.read()
            with open(now, "rb") as first, open(later, "rb") as second:
                self.assertEqual(first.read(), second.read())
            for bad in ("", "{", "[]", "{}", "null", good[:-9], good[1:], good.replace("fat-tree", "circle"),
                        good.replace('"nodes": 5', '"nodes": 0'), good.replace('"nodes": 5', '"nodes": 4'),
                        good.replace('"buckets": ', '"buckets": -'), good.replace('"links"', '"chains"'),
                        good.replace('"engine": 0', '"engine": 99'),
                        good.replace('"rma_sim_report": 1', '"rma_sim_report": 2'),
                        good.replace('"packets": ', '"packets": "x", "was": ')):
                with open(record, "w", encoding="utf-8") as file:
                    file.write(bad)
                status, out, errors = run("report", record)
                self.assertEqual((status, out, errors.count("\n")), (2, "", 1), (bad[:80], errors))
                self.assertTrue(errors.startswith(f"rma-sim: {record}: "), errors)
            missing = os.path.join(folder, "missing")
            self.assertEqual(run("report", missing), (2, "", f"rma-sim: {missing}: cannot be read, or is empty\n"))
            self.assertEqual(run("report")[0], 2)
            self.assertEqual(run("-n", "2", "--json", record, PROGRAM, "x")[0], 0)  # one node
            self.assertIn("s of virtual time", run("report", record)[1])

    def test_help(self):
        status, out, _ = run("--help")
        self.assertEqual(status, 0)
        for word in ("Usage: rma-sim", "--ranks-per-node", "--kill", "Exit status"):
            self.assertIn(word, out)
        self.assertEqual(run("--version")[0], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
