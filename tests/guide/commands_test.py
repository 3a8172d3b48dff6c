#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""commands_test.py ROOT TOOLS APP MODULE: the commands of README.md and of the guide do what their pages say.

Goal: a command that a reader copies works. Method: each line of a block of commands, and each command with arguments in
the text, is run here with the guide's first program as `./app`; or ELSEWHERE names the test that runs it; or NOT_HERE
says why no test can. One that is in none of the three lists fails the test, and so does a row that no page has.
Break: change an option in a page.
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# As they stand, or with what a page leaves open.
RUN = {
    "./app": "",
    "RMA_TRACE=trace.%r.json ./app": "",
    "rma-info": "",
    "rma-sim -n 1000 ./app": "",
    "rma-sim -n 16 --ranks-per-node 2 --faults --seed 7 ./app": "",
    "rma-sim -n 64 --ranks-per-node 8 --topology torus:4x2 --report ./app": "",
    "rma-trace all.json trace.*.json": "",
    "rmarun --help": "",
    "rmarun --keep-going": " -n 2 ./app",
    "rmarun --timeout 60": " -n 2 ./app",
    "rmarun -n 2 --valgrind ./app": "",
    "rmarun -n 4 --nodes 2 ./app": "",
    "rmarun -n 4 ./app": "",
    "rmarun -n 64 --pset io=0-3 --pset solver=4-63 ./app": "",
}
TOOLS_NEEDED = {"rmarun -n 2 --valgrind ./app": "valgrind"}
# The test that runs it: its file, and what stands there.
ELSEWHERE = {
    "export PATH=DIR/bin:$PATH CMAKE_PREFIX_PATH=DIR PKG_CONFIG_PATH=DIR/lib/pkgconfig LD_LIBRARY_PATH=DIR/lib":
        ("tests/guide/compile_lines.py", 'setting.replace("DIR", prefix)'),
    "g++ -std=c++20 -O2 app.cpp -o app $(pkg-config --cflags --libs rma)":
        ("tests/guide/compile_lines.py", "run(compiling)"),
    "cmake -B build && cmake --build build": ("tests/guide/compile_lines.py", "run(by_cmake)"),
    "cmake --preset install && cmake --build --preset install": ("tests/install/preset.sh", "--preset install"),
    "cmake --install build/install --prefix DIR": ("tests/install/preset.sh", "--install"),
    "cmake --build build/install --target uninstall": ("tests/install/uninstall.sh", "--target uninstall"),
    "dpkg-buildpackage -b -us -uc": ("tests/install/packages.sh", "dpkg-buildpackage -b -us -uc"),
    "mpirun -n 4 ./app": ("tests/hosts/CMakeLists.txt", "START ${start}"),
    "mpirun -n 64 ./app": ("tests/hosts/CMakeLists.txt", "START ${start}"),
    "srun --mpi=pmix -n 64 ./app": ("tests/hosts/CMakeLists.txt", "START ${start}"),
    "RMA_BOOT=pmi2 srun --mpi=pmi2 -n 64 ./app": ("tests/hosts/CMakeLists.txt", "hosts.pmi2"),
    "rmarun -n 4 --hosts a,b ./app": ("tests/hosts/CMakeLists.txt", "ssh"),
    "rmarun -n 4 --gdb 2 ./app": ("tests/boot/rmarun_surroundings_test.cpp", '"--gdb", "1"'),
    "tests/hosts/hosts --hosts 3 -- ./app": ("tests/hosts/hosts_test.py", "--hosts"),
    "tests/softroce/softroce --hosts 2 -- COMMAND": ("tests/softroce/softroce_test.py", "--hosts"),
    "perf/osu osu_put_latency osu_put_bw --plot put.svg": ("perf/CMakeLists.txt", "perf.osu_tables"),
}
NOT_HERE = {
    "scripts/demo": "installs packages and builds the library; the Containerfile runs it",
    "scripts/test": "builds the library and runs all tests, of which this is one; .ci/run calls it",
    "prterun -n 64 ./app": "needs PRRTE, which Debian has inside Open MPI only",
    "prterun --pset": "as the one above; tests/boot/pmix_sets_test.py has the names of sets from a server of its own",
    "perf/thread_bars --nodes 2": "measures for minutes, which no other program may disturb",
    "gdb --args rma-sim -n 4 ./app": "waits for a person",
    "gdb -p": "waits for a person",
    "ssh a": "is for the reader's hosts",
    "openssl rand -hex 32": "is another program's",
    "perf stat -e instructions:u": "needs the processor's counters, which a virtual machine may not have",
}
COMMAND = re.compile(r"(RMA_[A-Z_]+=\S+ )*(\./app|rmarun|rma-\w+|mpirun|prterun|srun|cmake|g\+\+|scripts/|tests/|perf/|"
                     r"perf |gdb|ssh|dpkg-|openssl|export )")


def commands_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            yield re.sub(r"\s+# .*", "", line).strip()
    plain = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for span in re.findall(r"`([^`]+)`", plain):
        span = re.sub(r"\s+", " ", span)
        if COMMAND.match(span) and (" " in span or span in RUN or span in NOT_HERE):
            yield span


def prepared(folder, app, module):
    os.symlink(app, os.path.join(folder, "app"))
    os.mkdir(os.path.join(folder, "sim"))
    os.symlink(module, os.path.join(folder, "sim", "app.so"))


def run(command, folder, tools):
    """What is wrong with it, or None."""
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False)
    if done.returncode != 0:
        return f"status {done.returncode}: {done.stdout}"
    if "./app" in command:
        asked = re.search(r"-n (\d+)", command)
        ranks = int(asked.group(1)) if asked else 1
        for rank in range(ranks):
            if f"rank {rank} has {100 + (rank - 1) % ranks}\n" not in done.stdout:
                return f"rank {rank} of {ranks} has not printed its line: {done.stdout}"
    if command.startswith("rma-info") and "RMA_FABRIC" not in done.stdout:
        return f"no settings: {done.stdout}"
    if command.startswith("rma-trace"):
        with open(os.path.join(folder, shlex.split(command)[1]), encoding="utf-8") as file:
            if not any(event.get("name") == "put" for event in json.load(file)):
                return "the trace has no put"
    return None


def main():
    root, tools, app, module = (os.path.abspath(argument) for argument in sys.argv[1:5])
    pages = [os.path.join(root, "README.md"), *sorted(glob.glob(os.path.join(root, "docs", "guide", "*.md")))]
    found = {command: page for page in reversed(pages) for command in commands_of(page)}
    wrong = [f"{os.path.relpath(page, root)}: neither run nor listed: {command}" for command, page in found.items()
             if command not in RUN and command not in ELSEWHERE and command not in NOT_HERE]
    wrong += [f"no page has this command any more: {command}" for command in (*RUN, *ELSEWHERE, *NOT_HERE)
              if command not in found]
    for command, (place, text) in ELSEWHERE.items():
        with open(os.path.join(root, place), encoding="utf-8") as file:
            if text not in file.read():
                wrong.append(f"{place} has no {text}, which stands for: {command}")
    skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        prepared(folder, app, module)
        for command, rest in RUN.items():  # the trace comes before what reads it
            if shutil.which(TOOLS_NEEDED.get(command, "sh")) is None:
                print(f"skipped: {command}: {TOOLS_NEEDED[command]} is not installed")
                skipped += 1
                continue
            problem = run(command + rest, folder, tools)
            if problem is not None:
                wrong.append(f"{command}: {problem}")
    print("\n".join(wrong))
    print(f"{len(RUN) - skipped} commands run, {skipped} skipped, {len(ELSEWHERE)} run by other tests, "
          f"{len(NOT_HERE)} not run: " + "; ".join(f"{command} ({why})" for command, why in NOT_HERE.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
