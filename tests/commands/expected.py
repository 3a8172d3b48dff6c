# SPDX-License-Identifier: Apache-2.0
"""What tests of these commands expect of each: `call` runs one, named `name`, and gives what it came to."""
from . import CANNOT_RUN_HERE, SKIPPED, WRONG_USAGE


def refusals(test, name, call, cases):
    """Each of `cases`, words and a part of what is said of them, is wrong usage, in one line."""
    for words, said in cases:
        with test.subTest(words=words):
            done = call(*words)
            test.assertEqual(done.returncode, WRONG_USAGE, done)
            test.assertEqual(done.stdout, "")
            test.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            test.assertTrue(done.stderr.startswith(f"{name}: "), done.stderr)
            test.assertIn(said, done.stderr)


def lacks(test, name, call, parts, **settings):
    """With these settings the machine lacks something, which is said in one line that has all `parts`."""
    for words, status, begin in ((["--check"], CANNOT_RUN_HERE, f"{name}: cannot run here: "),
                                 (["--", "true"], CANNOT_RUN_HERE, f"{name}: cannot run here: "),
                                 (["--skip", "--", "true"], SKIPPED, f"[skip] {name}: ")):
        with test.subTest(words=words):
            done = call(*words, **settings)
            test.assertEqual((done.returncode, done.stdout.count("\n"), done.stderr), (status, 1, ""), done)
            test.assertTrue(done.stdout.startswith(begin), done.stdout)
            for part in parts:
                test.assertIn(part, done.stdout)
