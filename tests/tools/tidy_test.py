#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy_test.py TIDY.py: each rule finds what it should and nothing else, in small trees made for the purpose."""
import os
import subprocess
import sys
import tempfile
import unittest

TIDY = ""
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
LISTED = "# SPDX-License-Identifier: Apache-2.0\ntarget_sources(rma PRIVATE a.cpp)\n"


def body(lines):
    return "  step();\n" * lines


class Tidy(unittest.TestCase):
    def run_on(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            result = subprocess.run([sys.executable, TIDY, root], capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        lines = result.stdout.splitlines()
        self.assertRegex(lines[-1], r"^tidy: \d+ findings in \d+ files$")
        self.assertEqual(result.returncode, 1 if lines[:-1] else 0)
        return lines[:-1]

    def rules(self, path, text):
        found = self.run_on({path: text})
        return [line.split(": ")[1] for line in found]

    def test_clean(self):
        self.assertEqual(self.run_on({"src/boot/a.cpp": SPDX + "int one() { return 1; }\n",
                                      "src/boot/CMakeLists.txt": LISTED, "README.md": "# rma\n"}), [])

    def test_spdx(self):
        self.assertEqual(self.rules("include/rma/a.hpp", "/// One.\nint one();\n"), ["spdx"])
        self.assertEqual(self.rules("scripts/run", "#!/bin/sh\ntrue\n"), ["spdx"])
        self.assertEqual(self.rules("scripts/run", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\ntrue\n"), [])

    def test_private_words(self):
        files = {"src/boot/a.cpp": SPDX + "int greeter = 0;  // a greeter\n", "src/boot/CMakeLists.txt": LISTED}
        self.assertEqual([line.split(": ")[1] for line in self.run_on(files)], ["private-word"])
        files["src/boot/a.cpp"] = SPDX + "int greeters = 0;  // a greeter\n"
        self.assertEqual(self.run_on(files), [])

    def test_comment_beginnings(self):
        for text, found in (("/// What it does.\nint a;\n", 1), ("/// The work.\nint a;\n", 0),
                            ("// Who\n// waits gets it.\nint a;\n", 1), ("/* Of a get. */\nint a;\n", 1),
                            ("/// \\file\n/// Whose turn it is.\nint a;\n", 1), ("/// Whatever it is.\nint a;\n", 0),
                            ("/// A rank. Who waits\n/// gets it.\nint a;\n", 1), ("// Who? A rank.\nint a;\n", 0),
                            ("/// A rank.\n/// Who waits gets it.\nint a;\n", 1), ("/// A\n/// What.\nint a;\n", 0),
                            ("/// Ranks: Of two\n/// each. What is that?\nint a;\n", 1), ("// of these\nint a;\n", 0),
                            ("// ---- part ----\n/// Of a part.\nint a;\n", 1), ("int a;  ///< length of a get\n", 0),
                            ("int a;  ///< of a get\n", 1), ("int a;  // Who waits\n", 1), ("int a;  // what?\n", 0),
                            ("int a;  ///< the length\n        ///< of a get\n", 0), ("f(int /*what*/);\n", 0),
                            ("int a;  ///< length\n/// Of a get.\nint b;\n", 1), ("// \"\nf(\"// What is\");\n", 0),
                            ("int a; /**< of a get */\n", 1), ("// tidy: allow(comment-beginning)\n/* Of a */\n", 0)):
            for path in ("include/a.hpp", "src/a.hpp", "tests/a.hpp"):
                self.assertEqual(self.rules(path, SPDX + text), ["comment-beginning"] * found, text)
            self.assertEqual(self.rules("docs/a.hpp", SPDX + text), [], text)
        begin = SPDX.replace("//", "#")
        for path in ("tools/a.py", "perf/CMakeLists.txt"):
            self.assertEqual(self.rules(path, begin + "# What is measured.\n"), ["comment-beginning"])
            self.assertEqual(self.rules(path, begin + "\n# Lines, \"# What\".\n"), [])
        self.assertEqual(self.rules("tools/a.py", begin + "a = 1  # of it\n"), ["comment-beginning"])
        self.assertEqual(self.rules("tools/a", "#!/usr/bin/env python3\n" + begin + "a = 1  # of it\n"),
                         ["comment-beginning"])
        self.assertEqual(self.rules("tools/a.py", begin + "a = '  # of it'\n"), [])

    def test_missing_path(self):
        files = {"src/boot/a.cpp": SPDX + "int one() { return 1; }\n", "src/boot/CMakeLists.txt": LISTED}
        self.assertEqual(self.run_on({**files, "README.md": "see src/boot/a.cpp and src/NAME.cpp\n"}), [])
        found = self.run_on({**files, "README.md": "see src/boot/b.cpp\n"})
        self.assertEqual([line.split(": ")[1] for line in found], ["missing-path"])

    def test_public_comments(self):
        def found(text):
            return self.rules("include/rma/a.hpp", SPDX + text)
        self.assertEqual(found("int one();\n"), ["public-comment"])
        self.assertEqual(found("/// The first number.\nint one();\nint uno();\n\nint two();\n"), ["public-comment"])
        self.assertEqual(found("/// The same.\nint one();\n"), ["public-comment"])
        self.assertEqual(found("/// A kind.\nenum class kind {\n  first,   ///< the first\n  second,\n};\n"),
                         ["public-comment"])
        begin = "/// A thing.\nclass A {\n public:\n  A(const A&) = delete;\n"
        end = "  int one();\n\n private:\n  int b;\n};\n"
        self.assertEqual(found(begin + end), ["public-comment"])
        self.assertEqual(found(begin + "  /// Its number.\n" + end), [])
        self.assertEqual(found("namespace detail {\nint one();\n}  // namespace detail\n"), [])
        self.assertEqual(self.rules("include/rma/detail/a.hpp", SPDX + "int one();\n"), [])

    def test_file_length(self):
        self.assertEqual(self.rules("tests/a.hpp", SPDX + "int x;\n" * 599), [])
        self.assertEqual(self.rules("tests/a.hpp", SPDX + "int x;\n" * 600), ["file-length"])

    def test_whitespace_and_columns(self):
        self.assertEqual(self.rules("a.hpp", SPDX + "int a; \n"), ["whitespace"])
        self.assertEqual(self.rules("a.hpp", SPDX + "\tint a;\n"), ["whitespace"])
        self.assertEqual(self.rules("a.hpp", SPDX + "int a;"), ["whitespace"])
        self.assertEqual(self.rules("a.hpp", SPDX + "/" * 120 + "\n"), [])
        self.assertEqual(self.rules("a.hpp", SPDX + "/" * 121 + "\n"), ["line-length"])
        self.assertEqual(self.rules("a.md", "x" * 200 + "\n"), [])

    def test_function_length(self):
        for before in ("void f() {\n", "static int f(int a,\n", "template <class T>\n  requires (sizeof(T) > 4)\n",
                       "struct s {\n  int b = 3;\n  int c{4};\n\n  void f() const noexcept {\n",
                       "namespace a::b {\nnamespace {\ns::s() : a_{1}, b_(2), c_{f(3)} {\n",
                       "TEST_CASE(\"a { b\", \"[x]\") {\n", "auto f() -> int {\n", "s& operator()(int x) & {\n"):
            opened = before if before.endswith("{\n") else before + "int b) {\n" * (before.count("(") > 0)
            opened = opened.replace("> 4)\n" + "int b) {", "> 4)\nvoid f(T t) {")
            head = opened.count("\n") if not opened.startswith(("struct", "namespace")) else 1
            closed = "}\n" * (opened.count("{") - opened.count("}") - opened.count("\"a {"))
            fits, long = SPDX + opened + body(70 - head - 1) + closed, SPDX + opened + body(70 - head) + closed
            self.assertEqual(self.rules("a.hpp", fits), [], opened)
            self.assertEqual(self.rules("a.hpp", long), ["function-length"], opened)

    def test_not_a_function(self):
        for text in ("struct s {\n" + "  int a;\n" * 100 + "};\n",
                     "namespace n {\n" + "int a();\n" * 100 + "}\n",
                     "constexpr int table[] = {\n" + "  1,\n" * 100 + "};\n",
                     "enum class [[nodiscard]] e : char {\n" + "  a,\n" * 100 + "};\n",
                     "struct alignas(64) s {\n" + "  int a;\n" * 100 + "};\n",
                     "template <class T> requires (f<T>())\nstruct s {\n" + "  int a;\n" * 100 + "};\n"):
            self.assertEqual(self.rules("a.hpp", SPDX + text), [], text[:40])

    def test_text_does_not_confuse_braces(self):
        text = "void f() { g(\"}{{\", '{', 1'000, R\"x(}}\")x\"); /* { */ }  // {\n#define open {\n"
        self.assertEqual(self.rules("a.hpp", SPDX + text + "int a;\n" * 100), [])

    def test_language(self):
        for text, found in (("It waits, too.\n", 1), ("Who waits gets an error.\n", 1), ("An error is told.\n", 1),
                            ("The epoch is over then.\n", 1),
                            ("The list is over 9 lines long.\n", 0),
                            ("A rank that waits also gets an error; too many do.\n", 0)):
            self.assertEqual(self.rules("docs/guide/a.md", text), ["language"] * found, text)
            self.assertEqual(self.rules("docs/other.md", text), [], text)

    def test_banned_words(self):
        for text, found in (("// TO" "DO: later\n", 1), ("thread_local int a;\n", 1), ("// no thread_local\n", 0),
                            ("volatile int a;\n", 1), ("void f() { asm volatile(\"pause\"); }\n", 0),
                            ("void f() { puts(\"volatile\"); }\n", 0),
                            ("// tidy: allow(banned-word) a device register\nvolatile int a;\n", 0)):
            self.assertEqual(self.rules("include/rma/detail/a.hpp", SPDX + text), ["banned-word"] * found, text)
        sleep = SPDX + "void f() { std::this_thread::sleep_for(1s); }\n"
        self.assertEqual(self.rules("tests/a.hpp", sleep), ["banned-word"])
        self.assertEqual(self.rules("examples/a.hpp", sleep), [])

    def test_include_direction(self):
        for path, included, found in (
                ("src/xfer/a.hpp", "channel/b.hpp", 0), ("src/channel/a.hpp", "xfer/b.hpp", 1),
                ("src/boot/a.hpp", "core/b.hpp", 0), ("src/core/a.hpp", "boot/b.hpp", 1),
                ("src/runtime/a.hpp", "xfer/b.hpp", 0), ("src/sync/a.hpp", "runtime/b.hpp", 0),
                ("src/runtime/a.hpp", "sync/b.hpp", 1), ("src/api/a.hpp", "sync/b.hpp", 0),
                ("src/sync/a.hpp", "coll/b.hpp", 1), ("src/datatype/a.hpp", "channel/b.hpp", 1),
                ("src/fabric/shm/a.hpp", "fabric/fabric.hpp", 0), ("src/fabric/shm/a.hpp", "fabric/sim/b.hpp", 1),
                ("src/fabric/sim/a.hpp", "fabric/shm/b.hpp", 0), ("src/fabric/sim/a.hpp", "fabric/ucx/b.hpp", 1),
                ("src/channel/a.hpp", "fabric/sim/b.hpp", 1), ("src/api/a.hpp", "fabric/sim/b.hpp", 1),
                ("src/api/a.hpp", "fabric/shm/b.hpp", 0), ("src/core/a.hpp", "fabric/sim/b.hpp", 1),
                ("src/fabric/a.hpp", "fabric/sim/b.hpp", 0), ("src/fabric/shm/a.hpp", "boot/b.hpp", 0),
                ("src/armci/a.hpp", "sync/b.hpp", 1), ("src/armci/a.hpp", "rma/b.hpp", 0),
                ("include/rma/a.hpp", "core/b.hpp", 1), ("examples/a.hpp", "core/b.hpp", 1),
                ("tests/core/a.hpp", "sync/b.hpp", 0), ("tools/a.hpp", "boot/b.hpp", 0)):
            self.assertEqual(self.rules(path, f'{SPDX}#include "{included}"\n'), ["include-direction"] * found,
                             f"{path} {included}")

    def test_foreign_headers(self):
        for path, included, found in (
                ("src/fabric/verbs/a.hpp", "infiniband/verbs.h", 0), ("src/xfer/a.hpp", "infiniband/verbs.h", 1),
                ("src/boot/a.hpp", "pmix.h", 0), ("src/sync/a.hpp", "ucp/api/ucp.h", 1),
                ("include/rma/a.hpp", "boost/intrusive/slist.hpp", 1), ("src/core/a.hpp", "fmt/format.h", 0)):
            self.assertEqual(self.rules(path, f"{SPDX}#include <{included}>\n"), ["foreign-header"] * found, path)

    def test_listed_in_cmake(self):
        source = SPDX + "int a();\n"
        found = self.run_on({"src/boot/b.cpp": source, "src/boot/CMakeLists.txt": LISTED})
        self.assertEqual([line.split(": ")[:2] for line in found], [["src/boot/b.cpp:1", "listed-in-cmake"]])
        self.assertEqual(self.run_on({"src/xfer/sub/a.cpp": source, "src/xfer/CMakeLists.txt":
                                      LISTED.replace("a.cpp", "sub/a.cpp")}), [])
        self.assertEqual(len(self.run_on({"src/boot/a.cpp": source, "src/boot/CMakeLists.txt":
                                          LISTED.replace("a.cpp", "aa.cpp")})), 1)

    def test_defined_where_declared(self):
        declared = SPDX + "void f(int a) noexcept;\n"
        defined = SPDX + "void f(int a) noexcept {\n  g(a);\n}\n"
        cmake = {"src/xfer/CMakeLists.txt": LISTED, "src/sync/CMakeLists.txt": LISTED}
        self.assertEqual(self.run_on({"src/xfer/a.hpp": declared, "src/xfer/a.cpp": defined, **cmake}), [])
        found = self.run_on({"src/xfer/a.hpp": declared, "src/sync/a.cpp": defined, **cmake})
        self.assertEqual([line.split(": ")[:2] for line in found], [["src/xfer/a.hpp:2", "defined-elsewhere"]])

    def test_python_functions(self):
        head = "# SPDX-License-Identifier: Apache-2.0\ndef f():\n"
        self.assertEqual(self.rules("a.py", head + "    f()\n" * 69), [])
        self.assertEqual(self.rules("a.py", head + "    f()\n" * 70), ["function-length"])


if __name__ == "__main__":
    TIDY = sys.argv.pop()
    unittest.main()
