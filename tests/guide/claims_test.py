#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""claims_test.py ROOT: each claim of a document that a command can check is there, and so is the test that checks it.

A row is a piece of a sentence, the file of the test, and the test's name or what it looks for there. Who changes the
sentence looks at the test, who drops the test at the sentence.
Break: change a word of a sentence, or the name of a test.
"""
import os
import re
import sys
import unittest

ROOT = ""
CASES = "tests/conformance/"

README = [
    ("rmarun -n 4 ./a.out -> sum 406", "tests/guide/CMakeLists.txt", "MATCH \"sum 406\""),
    ("a put is a store", "tests/perf/instructions.py", '"put": 22'),
    ("`Window::one_sided` says whether an operation needs the target's processor", CASES + "window_cases.cpp",
     "window.one_sided_atomics"),
    ("Where manager or handler are needed, a progress thread answers while the program computes",
     "tests/sync/CMakeLists.txt", "computing_target.tcp.auto"),
    ("target_link_libraries(app PRIVATE rma::rma)", "tests/install/CMakeLists.txt", "install.find_package"),
    ("rma_add_module(app)", "tests/install/CMakeLists.txt", "install.simulated"),
    ("`find_package(rma COMPONENTS sim verbs)` fails if", "tests/install/consumer/CMakeLists.txt", "COMPONENTS"),
    ("`add_subdirectory` and FetchContent give the same target", "tests/install/CMakeLists.txt",
     "install.subdirectory"),
    ("Without CMake `pkg-config` gives the flags", "tests/install/CMakeLists.txt", "install.pkg_config"),
    ("`dpkg-buildpackage -b -us -uc` makes Debian packages", "tests/install/CMakeLists.txt", "install.packages"),
    ("`rma-info` prints every setting with its value", "tests/tools/rma_info_test.py", "test_all_is_well"),
    ("what each call on a window did, by which protocol and why", "tests/core/trace_test.py", "test_put_get"),
    ("programs of ARMCI and Global Arrays, linked as they are", "tests/armci/CMakeLists.txt", "ga.symbols"),
    ("MPI programs as they are, their windows by this library", "tests/mpi/CMakeLists.txt", "NAME windows"),
    ("examples with expected output", "examples/CMakeLists.txt", "expected"),
]

RUNNING = [
    ("`rmarun -n 4 ./app` starts four ranks on this machine", "tests/boot/rmarun_test.cpp",
     "ranks exchange values through rmarun"),
    ("meet by `RMA_BOOT=tcp://host:port RMA_RANK=r RMA_SIZE=n RMA_KEY=k`", "tests/boot/tcp_test.cpp",
     "tcp: a job without a launcher"),
    ("the same random text of at least 16 characters for all", "tests/boot/tcp_test.cpp", "tcp: a wrong key"),
    ("a rank that has waited for a minute in one call prints it for its node", "tests/faults/stall_test.py",
     "RMA_STALL_REPORT_S"),
    ("`rmarun --timeout 60` makes them report before it ends the job", "tests/boot/rmarun_test.cpp",
     "a time-out says where the ranks are"),
    ("ends after `RMA_BOOT_TIMEOUT_MS` and names the rank that holds it up", "tests/faults/start_test.py",
     "RMA_BOOT_TIMEOUT_MS"),
    ("lets any number of threads use one window at once", CASES + "thread_cases.cpp", "thread.one_window"),
    ("`rt.team_of(\"io\")`", "tests/boot/rmarun_test.cpp", "process sets"),
    ("under PMIx the names are the launcher's", "tests/boot/pmix_sets_test.py", "test_members_have_teams"),
    ("`mpirun -n 64 ./app` (Open MPI) and `srun --mpi=pmix -n 64 ./app` (Slurm) start the same binary",
     "tests/hosts/CMakeLists.txt", "START ${start}"),
    ("`RMA_BOOT=pmi2` uses PMI-2", "tests/hosts/CMakeLists.txt", "hosts.pmi2"),
    ("Under PMIx a program may use MPI and windows together", "examples/CMakeLists.txt", "09_with_mpi"),
    ("on several hosts that are namespaces of one machine", "tests/hosts/hosts_test.py",
     "test_each_host_is_one_of_its_own"),
    ("runs a command on small virtual hosts whose RDMA device is Linux's software RoCE",
     "tests/softroce/softroce_test.py", "test_two_hosts_reach_each_other"),
    ("runs a program as simulated ranks in one process and in virtual time, every time in the same way",
     "tests/fabric/sim/rma_sim_test.py", "test_same_run_twice"),
    ("It reports which rank waits for what in a deadlock", "tests/fabric/sim/rma_sim_test.py",
     "test_deadlock"),
    ("and kills ranks on request", "tests/fabric/sim/rma_sim_test.py", "test_kill"),
    ("--heat-map links.svg", "tests/fabric/sim/rma_sim_test.py", "test_report_later"),
    ("`rma::sim::run` ([sim.hpp](../../include/rma/sim.hpp)) does the same inside a test",
     "tests/fabric/sim/run_test.cpp", "four simulated ranks put, lock and fence"),
]

COMING_FROM = [
    ("Names of the right column are checked against `include/rma`", "tests/tools/CMakeLists.txt",
     "coming_from_test.py"),
    ("`MPI_PROC_NULL` as a target | `rma::no_rank`: the operation does nothing", CASES + "atomic_cases.cpp",
     "to_no_rank"),
    ("(a negative color: a team of oneself)", CASES + "team_cases.cpp", "team.split_ties_and_loners"),
    ("or drop the handle, which waits for nobody", CASES + "window_cases.cpp", "window.dropped_windows"),
    ("(each rank its own size), a displacement", CASES + "window_cases.cpp", "window.sizes_differ_by_rank"),
    ("`message_too_long`: nothing is written, the text names both sizes", CASES + "p2p_cases.cpp", "p2p.too_long"),
    ("`Team::bsend` (no buffer to attach)", CASES + "p2p_cases.cpp", "p2p.buffered"),
    ("gets one line that names the call and its place in your source", CASES + "misuse_cases.cpp",
     "messages_name_the_place"),
    ("gets `peer_failed` within two seconds", "tests/boot/rmarun_test.cpp",
     "who dies is known to all others within 2 s"),
    ("after `RMA_PEER_TIMEOUT_MS` (10 s) more", "tests/hosts/CMakeLists.txt", "hosts.cut.for_good"),
    ("learns of it by `Team::revoke` or `Window::revoke`", CASES + "team_cases.cpp", "team.revoked_window"),
    ("`put(value, ...)` has taken its value when it returns", CASES + "put_get_cases.cpp",
     "put_get.values"),
    ("Accumulates are atomic element by element, in order from one origin", CASES + "memory_model_cases.cpp",
     "litmus.accumulates_in_order"),
    ("When `lock` returns the lock is held", CASES + "lock_cases.cpp", "lock.exclusive_counters"),
    ("a wait takes away what it has waited for", CASES + "signal_cases.cpp", "signal.counts_add_up"),
    ("the place of one in the list, which is taken", CASES + "signal_cases.cpp", "signal.first_of_several"),
]

MEMORY_MODEL = [
    ("`fence` (all ranks) | all of the epoch, to plain loads of the target", "litmus.after_fence"),
    ("`complete` and the target's `wait` | all of the epoch, to plain loads", "litmus.after_complete_and_wait"),
    ("`unlock`, `flush` | all to that target, to operations of any rank that begin afterwards", "litmus.after_unlock"),
    ("to operations of any rank that begin afterwards", "litmus.after_flush_and_message"),
    ("the data of this operation, to plain loads of the target", "litmus.after_signal"),
    ("A rank that learns of a completion by another way (a barrier,", "litmus.after_flush_and_barrier"),
    ("an atomic) sees the data", "litmus.after_atomic"),
    ("Accumulates from one rank to one location are applied in order", "litmus.accumulates_in_order"),
    ("Overlapping puts of different ranks leave one value or the other in each element", "litmus.overlapping_puts"),
    ("may run at the same time as remote operations on other elements", "litmus.own_part_beside_puts"),
]

SIGNALS = [
    ("A signal speaks of its own data only", CASES + "signal_cases.cpp", "signal.ordered_by_flush"),
]


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def is_there(sentence, text):
    return re.sub(r"\s+", " ", sentence) in re.sub(r"\s+", " ", text)


class Claims(unittest.TestCase):
    def check(self, document, rows):
        text = text_of(document)
        for sentence, place, test in rows:
            with self.subTest(sentence):
                self.assertTrue(is_there(sentence, text), f"{document} does not say: {sentence}")
                checked = test in text_of(place)
                self.assertTrue(checked, f"{place} has no {test}, which checks what {document} says: {sentence}")

    def test_readme(self):
        self.check("README.md", README)

    def test_running(self):
        self.check("docs/guide/running.md", RUNNING)

    def test_coming_from(self):
        self.check("docs/coming-from.md", COMING_FROM)

    def test_memory_model(self):
        self.check("docs/guide/memory-model.md",
                   [(sentence, CASES + "memory_model_cases.cpp", f'"{test}"') for sentence, test in MEMORY_MODEL])

    def test_each_litmus_test_has_its_sentence(self):
        cases = set(re.findall(r'\{"(litmus\.\w+)"', text_of(CASES + "memory_model_cases.cpp")))
        self.assertEqual(cases, {test for _, test in MEMORY_MODEL})

    def test_signals(self):
        self.check("docs/guide/signals.md", SIGNALS)


if __name__ == "__main__":
    ROOT = sys.argv.pop()
    unittest.main()
