#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""questions_test.py GUIDE: each question of a person who knows MPI has a heading of the guide that answers it, and
every link between the pages leads somewhere."""
import os
import re
import sys
import unittest

GUIDE = ""

QUESTIONS = {
    "How do I compile a program?": "first-program.md#compile",
    "How do I start four ranks?": "first-program.md#start",
    "It does not start: where do I look?": "first-program.md#if-it-does-not-start",
    "Which way to make a window is fastest?": "windows.md#which-kind-to-choose",
    "Can a window be over my own memory?": "windows.md#user-memory",
    "What if the type is known at run time only?": "windows.md#untyped-windows",
    "Is freeing collective?": "windows.md#the-end-of-a-window",
    "Fence, lock or post and start?": "epochs.md#which-kind-to-choose",
    "Is lock a mutex?": "epochs.md#passive-target-lock",
    "What does lock_all cost?": "epochs.md#passive-target-lock_all-and-flush",
    "When may I write the buffer again?": "epochs.md#when-is-an-operation-complete",
    "Can a fence overlap with computation?": "epochs.md#synchronization-that-does-not-block",
    "What if an exception leaves an epoch?": "epochs.md#scopes-and-exceptions",
    "What does the target see after a flush and a barrier?": "memory-model.md#what-is-visible-after-which-call",
    "When do I need sync?": "memory-model.md#when-is-sync-needed",
    "Are two puts to one target in order?": "memory-model.md#what-is-not-ordered",
    "May I load and store my own part meanwhile?": "memory-model.md#plain-access-to-the-own-part",
    "What is atomic with what?": "atomics.md#what-is-atomic-with-what",
    "Does an atomic need the target?": "atomics.md#who-makes-them-atomic",
    "How is a derived datatype written?": "layouts.md#layouts",
    "How are strided transfers carried out?": "layouts.md#schemes",
    "How does the target learn of a put?": "signals.md#signals",
    "Can a signal overtake another?": "signals.md#order",
    "My updates are small and random: what now?": "aggregation.md#aggregation",
    "Which operations need the target's processor?": "progress.md#which-operations-need-the-target",
    "My target computes for long: what now?": "progress.md#a-target-that-computes",
    "May several threads use one window?": "threads.md#threads",
    "How do I handle errors without exceptions?": "errors.md#exceptions-and-status-codes",
    "What happens when a rank dies?": "errors.md#a-rank-dies",
    "What is left behind after kill -9?": "errors.md#nothing-is-left-behind",
    "Which setting do I change?": "tuning.md#how-to-find-out-what-to-change",
    "How do I run on several hosts?": "several-hosts.md#launchers",
    "Which network is used?": "several-hosts.md#networks",
    "How do I try thousands of ranks?": "simulator.md#simulator",
    "My job hangs: where is it?": "debugging.md#a-job-hangs",
    "How do I measure?": "measuring.md#measuring",
}


def anchor_of(heading):
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


class Guide(unittest.TestCase):
    def setUp(self):
        self.pages = {}
        for name in os.listdir(GUIDE):
            with open(os.path.join(GUIDE, name), encoding="utf-8") as file:
                self.pages[name] = file.read()

    def anchors(self, page):
        outside = re.sub(r"^```.*?^```", "", self.pages[page], flags=re.DOTALL | re.MULTILINE)
        return {anchor_of(heading) for heading in re.findall(r"^#+ (.*)$", outside, re.MULTILINE)}

    def test_each_question_has_its_answer(self):
        for question, place in QUESTIONS.items():
            page, anchor = place.split("#")
            self.assertIn(page, self.pages, question)
            self.assertIn(anchor, self.anchors(page), question)

    def test_links_lead_somewhere(self):
        for name, text in self.pages.items():
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                self.assertTrue(os.path.exists(os.path.join(GUIDE, link)), f"{name}: {link}")

    def test_each_counter_is_described(self):
        with open(os.path.join(GUIDE, "../../src/runtime/runtime_core.cpp"), encoding="utf-8") as file:
            text = file.read()
        names = re.findall(r'"(\w+)"', text[text.index("names[] = {"):text.index("static_assert(std::size(names)")])
        self.assertGreater(len(names), 20)
        for name in names + re.findall(r'add\("(\w+)"', text):
            self.assertIn(f"`{name}`", self.pages["measuring.md"])

    def test_the_index_names_every_page(self):
        for name in self.pages:
            self.assertTrue(name == "README.md" or f"({name})" in self.pages["README.md"], name)


if __name__ == "__main__":
    GUIDE = sys.argv.pop()
    unittest.main()
