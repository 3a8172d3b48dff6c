#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compile_lines.py PAGE PREFIX FOLDER: the commands of the guide's first program do what the page says, with the
library installed in PREFIX: its program is built by its CMakeLists.txt and by its compile line, and started as it says.
"""
import os
import re
import shutil
import subprocess
import sys

page, prefix, folder = sys.argv[1:4]
with open(page, encoding="utf-8") as file:
    text = file.read()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def write(name, content):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
        out.write(content)


def run(commands):
    print("+", commands.strip().replace("\n", "\n+ "), flush=True)
    done = subprocess.run(["sh", "-ec", paths + commands], cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    if done.returncode != 0:
        sys.exit(f"compile_lines: status {done.returncode}: {commands}")
    return done.stdout


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
(program,), (lists,) = blocks("cpp"), blocks("cmake")
setting, compiling, starting = blocks("sh")
paths = setting.replace("DIR", prefix)
write("app.cpp", program)
write("CMakeLists.txt", lists)
(by_cmake,) = re.findall(r"`(cmake -B build && cmake --build build)`", text)
run(by_cmake)
run(compiling)
starts = [line for line in starting.splitlines() if not line.startswith("mpirun")]  # other launchers: tests/hosts
if len(starts) != 2 or len(starting.splitlines()) != 3:
    sys.exit("compile_lines: the page starts the program otherwise than this test")
for line in starts:
    ranks = 4 if line.startswith("rmarun") else 1
    expected = [f"rank {rank} has {100 + (rank - 1) % ranks}" for rank in range(ranks)]
    for app in ("./app", "build/app"):
        printed = run(line.replace("./app", app))
        if sorted(printed.splitlines()) != expected:
            sys.exit(f"compile_lines: expected {expected}")
