# SPDX-License-Identifier: Apache-2.0
"""rma_info_test.py RMA_INFO RMARUN: how rma-info ends.

Goal: 0 if everything was printed, 1 with a line that says why if not, 2 for a mistake of the user.
Break: do not flush standard output before the end, or let exceptions out.
"""
import json
import subprocess
import sys
import unittest

RMA_INFO, RMARUN = sys.argv[1:3]


def run(*command, output=None):
    """Exit status and standard error."""
    with open(output or "/dev/null", "w", encoding="utf-8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


def as_json(*command):
    done = subprocess.run([*command, "--json"], capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


class RmaInfo(unittest.TestCase):
    def test_all_is_well(self):
        for arguments in ((), ("--help",), ("--version",), ("--all",), ("--json",), ("--man",)):
            self.assertEqual(run(RMA_INFO, *arguments), (0, ""))

    def test_a_setting_of_nearly_that_name(self):
        status, errors = run("env", "RMA_FENSE=def", RMA_INFO)
        self.assertEqual(status, 2)
        self.assertEqual(errors, "rma-info: RMA_FENSE (environment) is not a setting; did you mean RMA_FENCE? "
                                 "(see rma-info)\n")
        status, errors = run("env", "RMA_SOMETHING_ELSE=1", RMA_INFO)
        self.assertIn("the settings are: RMA_BOOT RMA_RANK", errors)

    def test_settings_of_launchers_are_hidden(self):
        def lines(*arguments):
            return subprocess.run([RMA_INFO, *arguments], capture_output=True, check=True, text=True, timeout=60).stdout
        self.assertNotIn("RMA_LOCAL_RANKS", lines())
        self.assertIn("RMA_LOCK ", lines())
        self.assertIn("RMA_LOCAL_RANKS", lines("--all"))

    def test_json(self):
        told = as_json(RMARUN, "-n", "2", RMA_INFO)
        self.assertEqual(told["ranks"], 2)
        self.assertIn("1", told["routes_from_rank_0"])
        self.assertEqual(set(told["settings"]["RMA_FENCE"]), {"value", "origin", "values", "summary"})
        self.assertEqual(told["settings"]["RMA_SIZE"]["origin"], "environment")

    def test_manual_page(self):
        text = subprocess.run([RMA_INFO, "--man"], capture_output=True, check=True, text=True, timeout=60).stdout
        told = as_json(RMA_INFO)
        for name in told["settings"]:
            self.assertIn(f".TP\n.B {name}\n", text)
        self.assertFalse([line for line in text.splitlines() if line.startswith("'")])

    def test_a_full_disk(self):
        said = "rma-info: cannot write: No space left on device\n"
        for arguments in ((), ("--help",), ("--version",)):
            self.assertEqual(run(RMA_INFO, *arguments, output="/dev/full"), (1, said))
        status, errors = run(RMARUN, "-n", "2", RMA_INFO, output="/dev/full")
        self.assertEqual(status, 1)
        self.assertTrue(errors.startswith(said), errors)

    def test_mistakes(self):
        status, errors = run(RMA_INFO, "extra")
        self.assertEqual(status, 2)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("extra", errors)
        status, errors = run("env", "RMA_SPIN_US=x", RMA_INFO)
        self.assertEqual(status, 2)
        self.assertIn("RMA_SPIN_US", errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
