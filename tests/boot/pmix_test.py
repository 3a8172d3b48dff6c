#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pmix_test.py BOOT_PROBE SETS_PROGRAM MPIRUN [MPIEXEC]: jobs that Open MPI's mpirun starts, which speaks PMIx to its
ranks, and jobs of MPICH's mpiexec, which speaks PMI-2.

BOOT_PROBE uses the boot layer alone (boot_probe.cpp has its modes), SETS_PROGRAM the process sets. Exits
with 77 where mpirun can start nothing."""
import collections
import os
import signal
import subprocess
import sys
import tempfile
import unittest

PROBE, SETS, MPIRUN = sys.argv[1:4]
MPIEXEC = sys.argv[4] if len(sys.argv) > 4 else None
PATIENCE_S = 60
FOLDER = tempfile.TemporaryDirectory(prefix="rma-pmix-")  # files that Open MPI needs, and may leave behind


def start(ranks, mode, *options, program=PROBE, more=(), **settings):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_orte_tmpdir_base": FOLDER.name, **settings}
    words = [MPIRUN, "--oversubscribe", "-n", str(ranks), *options, program, mode, *more]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment)


def run(ranks, mode, *options, **settings):
    """Exit status and what was said."""
    with start(ranks, mode, *options, **settings) as started:
        out, err = started.communicate(timeout=PATIENCE_S)
        return started.returncode, out, err


class Pmix(unittest.TestCase):
    def test_all_ranks_exchange_values(self):
        for ranks in (1, 2, 5):
            with self.subTest(ranks=ranks):
                status, out, err = run(ranks, "exchange")
                total = sum(rank * rank for rank in range(ranks))
                self.assertEqual(status, 0, err)
                self.assertEqual(sorted(out.splitlines()), [f"rank {rank}: sum {total}" for rank in range(ranks)])

    def test_jobs_on_one_node_open_no_port(self):
        """The socket has no place in the network: a job finds itself even where there is no interface for it."""
        status, _, err = run(2, "exchange", RMA_BOOT_INTERFACE="nowhere")
        self.assertEqual(status, 0, err)

    def test_what_the_user_says_counts_more(self):
        status, out, err = run(3, "exchange", "-x", "RMA_BOOT=alone")
        self.assertEqual((status, out.splitlines()), (0, ["rank 0: sum 0"] * 3), err)

    def test_process_sets(self):
        """This launcher defines none: that is no error, and what the user defines counts as elsewhere."""
        status, out, err = run(2, "rma://world", program=SETS)
        self.assertEqual((status, sorted(out.splitlines())), (0, [
            "rank 0: rma://world has 2 members, sum 1; after 1", "rank 1: rma://world has 2 members, sum 1; after 0",
            "sets: rma://world rma://node rma://self"]), err)
        status, out, err = run(2, "second", "-x", "RMA_PROCESS_SETS=second=1", program=SETS)
        self.assertEqual(status, 0, err)
        self.assertIn("rank 1: second has 1 members, sum 1; after 1", out.splitlines())

    def test_a_rank_that_does_not_come_is_not_waited_for_for_ever(self):
        stops = f"[ $PMIX_RANK = 1 ] && kill -STOP $$; exec {SETS} rma://world"
        with start(3, "-c", program="sh", more=(stops,), RMA_BOOT_TIMEOUT_MS="3000") as job:
            said = ""
            for said in job.stderr:
                if "3 s (RMA_BOOT_TIMEOUT_MS)" in said:
                    break
            job.kill()  # mpirun may wait for the stopped rank
        self.assertIn("for the other ranks to come", said)

    def test_abort_reaches_the_launcher(self):
        status, _, err = run(3, "abort")
        self.assertEqual(status, 42, err)
        self.assertIn("rma: rank 1 aborted the job: the answer", err)

    def test_survivors_hear_of_a_death(self):
        with start(4, "wait", "--enable-recovery") as job:
            pids = {}
            while len(pids) < 4:
                words = job.stdout.readline().split()
                self.assertTrue(words, job.stderr.read() if job.poll() is not None else "no output")
                pids[int(words[1])] = int(words[2])
            os.kill(pids[2], signal.SIGKILL)
            out, _ = job.communicate(timeout=PATIENCE_S)
        told = collections.Counter(line for line in out.splitlines() if "saw rank 2 die" in line)
        self.assertEqual(told, {f"rank {rank} saw rank 2 die": 1 for rank in (0, 1, 3)}, out)

    def test_a_launcher_that_is_not_there_is_an_error(self):
        done = subprocess.run([PROBE, "exchange"], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                              env={**os.environ, "PMIX_NAMESPACE": "nothing", "PMIX_RANK": "0"})
        self.assertEqual(done.returncode, 99, done)
        self.assertIn("PMIx cannot start", done.stderr)


@unittest.skipUnless(MPIEXEC, "MPICH's mpiexec is not installed")
class Pmi2(unittest.TestCase):
    def run_probe(self, ranks, mode, boot="pmi2"):
        return subprocess.run([MPIEXEC, "-n", str(ranks), PROBE, mode], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, env={**os.environ, "RMA_BOOT": boot})

    def test_all_ranks_exchange_values(self):
        for ranks in (1, 2, 5):
            with self.subTest(ranks=ranks):
                done = self.run_probe(ranks, "exchange")
                total = sum(rank * rank for rank in range(ranks))
                self.assertEqual(done.returncode, 0, done)
                self.assertEqual(sorted(done.stdout.splitlines()), [f"rank {r}: sum {total}" for r in range(ranks)])

    def test_it_has_to_be_asked_for(self):
        """MPI in the same process would use the same descriptor."""
        done = self.run_probe(2, "exchange", boot="")
        self.assertEqual((done.returncode, done.stdout.splitlines()), (0, ["rank 0: sum 0"] * 2), done)

    def test_abort_reaches_the_launcher(self):
        done = self.run_probe(3, "abort")  # MPICH 4.0 ends everything at once, and may lose what ranks have printed
        self.assertNotEqual(done.returncode, 0, done)

    def test_without_a_launcher_it_is_an_error(self):
        done = subprocess.run([PROBE, "exchange"], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                              env={**os.environ, "RMA_BOOT": "pmi2"})
        self.assertEqual(done.returncode, 99, done)
        self.assertIn("no PMI_FD", done.stderr)


if __name__ == "__main__":
    del sys.argv[1:]
    probed, _, why = run(1, "exchange", RMA_BOOT="alone")
    if probed != 0 and "boot_probe" not in why:
        print(f"[skip] pmix: mpirun starts nothing here: {(why.strip() or 'without a word').splitlines()[-1]}")
        sys.exit(77)
    unittest.main(verbosity=1)
