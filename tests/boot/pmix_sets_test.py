#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pmix_sets_test.py SETS_PROGRAM PMIX_HOST: the process sets that a PMIx launcher defines. PMIX_HOST is one
(pmix_host.cpp); SETS_PROGRAM says what its ranks learn (sets_program.cpp)."""
import os
import subprocess
import sys
import tempfile
import unittest

SETS, HOST = sys.argv[1:3]
PATIENCE_S = 60
FOLDER = tempfile.TemporaryDirectory(prefix="rma-pmix-")  # files that PMIx needs, and may leave behind
OWN = "rma://world rma://node rma://self"


def run(ranks, sets, *names, how=(), **settings):
    """Exit status, sorted lines of output, and errors."""
    words = [HOST, *how, str(ranks), *sets, "--", SETS, *names]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=PATIENCE_S, env={**os.environ, "TMPDIR": FOLDER.name, **settings})
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


def outside(rank, name, members):
    return (f"rank {rank}: team_of: bad_argument: rank {rank} is not in process set '{name}', whose {members} members "
            "make its team; see ranks_of")


class Sets(unittest.TestCase):
    def test_members_have_teams(self):
        for how in ((), ("--wrapped",)):
            with self.subTest(how=how):
                status, out, err = run(3, ["even=2,0", "last=2"], "even", "last", how=how)
                self.assertEqual((status, out), (0, sorted([
                    f"sets: {OWN} even last",
                    "rank 0: even has 2 members, sum 2; after 2", "rank 2: even has 2 members, sum 2; after 0",
                    "rank 2: last has 1 members, sum 2; after 2",
                    outside(1, "even", 2),
                    outside(0, "last", 1),
                    outside(1, "last", 1),
                ])), err)

    def test_one_member_may_stand_for_all(self):
        status, out, err = run(2, ["everybody=*"], "everybody")
        self.assertEqual((status, out), (0, [
            "rank 0: everybody has 2 members, sum 1; after 1", "rank 1: everybody has 2 members, sum 1; after 0",
            f"sets: {OWN} everybody"]), err)

    def test_there_may_be_none(self):
        status, out, err = run(2, [])
        self.assertEqual((status, out), (0, [f"sets: {OWN}"]), err)

    def test_a_job_of_one_has_sets(self):
        status, out, err = run(1, ["me=0"], "me")
        self.assertEqual((status, out), (0, ["rank 0: me has 1 members, sum 0; after 0", f"sets: {OWN} me"]), err)

    def test_what_the_user_says_counts_more(self):
        status, out, err = run(2, ["one=0", "two=*"], "one", RMA_PROCESS_SETS="one=1")
        self.assertEqual(status, 0, err)
        self.assertIn(f"sets: {OWN} one two", out)
        self.assertIn("rank 1: one has 1 members, sum 1; after 1", out)

    def test_an_unknown_set_is_an_error_that_lists_the_others(self):
        status, _, err = run(2, ["io=0", "rest=1"], "oi")
        self.assertEqual(status, 9, err)
        self.assertIn("ranks_of at ", err)
        self.assertIn("bad_argument: there is no process set 'oi'; there are rma://world, rma://node, rma://self, io, "
                      "rest", err)

    def test_processes_of_other_jobs_are_an_error(self):
        status, _, err = run(2, ["both=0,x"], "both")
        self.assertEqual(status, 9, err)
        self.assertIn("process set 'both' has members that are no ranks of this job", err)

    def test_members_that_do_not_exist_are_an_error(self):
        status, _, err = run(2, ["more=0,7"], "more")
        self.assertEqual(status, 9, err)
        self.assertIn("names members of process set 'more' that do not exist", err)

    def test_a_launcher_that_does_not_answer_is_an_error(self):
        status, _, err = run(1, ["me=0"], "me", how=("--silent",), RMA_BOOT_TIMEOUT_MS="1000")
        self.assertEqual(status, 9, err)
        self.assertIn("has not said within 1 s what process sets there are", err)


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=1)
