#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""blocks.py OUTPUT PAGE...: writes a program that runs the C++ blocks of these pages one after the other.

A block whose main function has a command line is written as a program of its own, beside OUTPUT; its path is printed.
A main function without one is called by the program. Any other block is the body of a function that has a Runtime `rt`.
"""
import os
import re
import sys

HEAD = """// Made by tests/guide/blocks.py.
#include <rma/rma.hpp>
#include <rma/sim.hpp>

#include <chrono>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

"""


def blocks_of(path):
    with open(path, encoding="utf-8") as file:
        return re.findall(r"^```cpp\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)


def write_program(output, name, block):
    """A block that makes its own Runtime is a program of its own."""
    path = os.path.join(os.path.dirname(output), f"guide_{name}.cpp")
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != block:
        with open(path, "w", encoding="utf-8") as file:
            file.write(block)
    print(path)


def main():
    output, pages = sys.argv[1], sys.argv[2:]
    text, calls = HEAD, []
    for page in pages:
        stem = re.sub(r"\W", "_", os.path.splitext(os.path.basename(page))[0])
        for number, block in enumerate(blocks_of(page), 1):
            name = f"{stem}_{number}"
            code = re.sub(r"^#include .*\n", "", block, flags=re.MULTILINE)
            if "int main(int argc" in code:
                write_program(output, name, block)
            elif "int main()" in code:
                text += f"namespace {name} {{\n{code.replace('int main()', 'int run()').lstrip()}}}\n\n"
                calls.append(f"  if (rt.rank() == 0 && {name}::run() != 0) rt.abort(1, \"{name}\");\n")
            else:
                body = "".join(f"  {line}\n" if line else "\n" for line in code.splitlines())
                text += f"void {name}([[maybe_unused]] rma::Runtime& rt) {{\n{body}}}\n\n"
                calls.append(f"  {name}(rt);\n")
            if "main" not in code or "int main()" in block:
                calls.append("  rt.world().barrier();\n")
    text += "int main(int argc, char** argv) {\n  rma::Runtime rt(argc, argv);\n" + "".join(calls)
    text += f"  if (rt.rank() == 0) std::printf(\"{len(calls)} steps of the guide\\n\");\n  return 0;\n}}\n"
    if not os.path.exists(output) or open(output, encoding="utf-8").read() != text:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
