#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""no_globals_test.py COMPILER: no_globals.py finds each kind of mutable static and nothing that is constant."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "no_globals.py")
COMPILER = ""

CONSTANT = """
#include <string>
struct shape { virtual ~shape() = default; virtual int sides() const { return 0; } };
shape* make() { return new shape; }
extern const char* const names[2];
const char* const names[2] = {"a", "b"};
constexpr int table[] = {1, 2, 3};
int at(int i) { static constexpr int local[] = {4, 5}; return table[i] + local[i]; }
int guarded(const std::string& s) { try { return std::stoi(s); } catch (...) { return 0; } }
"""


class NoGlobals(unittest.TestCase):
    def check(self, source, allowed=""):
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)
            for name, text in (("a.cpp", source), ("allowed.txt", allowed)):
                with open(path(name), "w", encoding="utf-8") as file:
                    file.write(text)
            subprocess.run([COMPILER, "-std=c++20", "-O1", "-c", path("a.cpp"), "-o", path("a.o")], check=True)
            subprocess.run(["ar", "rcs", path("a.a"), path("a.o")], check=True)
            return subprocess.run([sys.executable, CHECKER, path("a.a"), path("allowed.txt")],
                                  capture_output=True, text=True, check=False)

    def test_constants_pass(self):
        result = self.check(CONSTANT)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_each_kind_is_found(self):
        for source in ("int counter;", "int counter = 3;", "thread_local int counter;",
                       "thread_local int counter = 3;", "static int counter; int next() { return ++counter; }",
                       "int next() { static int counter = 7; return ++counter; }",
                       "inline int counter = 1; int next() { return ++counter; }",
                       "int x(); int next() { static int counter = x(); return counter; }",
                       "extern const int counter; int x(); const int counter = x();"):
            result = self.check(source)
            self.assertEqual(result.returncode, 1, source)
            self.assertIn("counter", result.stdout)

    def test_allowlist(self):
        self.assertEqual(self.check("int counter;", "counter  # because\n").returncode, 0)
        self.assertEqual(self.check("int counter;", "count\n").returncode, 1)


if __name__ == "__main__":
    COMPILER = sys.argv.pop()
    unittest.main()
