# SPDX-License-Identifier: Apache-2.0
"""What the dissertation's experiments run on besides the simulator: jobs of few ranks on this machine, or in a virtual
host with software RoCE."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIMULATOR = "simulator"

# The environment of the job, whether it has nodes that are kept apart, and a description.
MACHINES = {
    "shm": ({"RMA_FABRIC": "shm"}, False, "between ranks of one machine, by its memory"),
    "tcp": ({"RMA_FABRIC": "tcp"}, True, "between virtual nodes of one machine, by TCP"),
    "ucx": ({"RMA_FABRIC": "ucx", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}, True,
            "between virtual nodes of one machine, by UCX over TCP"),
    "verbs": ({"RMA_FABRIC": "verbs"}, True, "between virtual nodes of one machine, by its RDMA adapter"),
    "softroce": (None, True, "between virtual nodes of one virtual host, by software RoCE"),
}
WARNING = """One run, on a machine that ranks share with each other and with others: the simulated results say what the
protocols do on the dissertation's cluster. Memory, TCP and software RoCE are the work of the ranks' own processors, so
that they hide little of it."""


def add_arguments(parser):
    parser.add_argument("--on", default=SIMULATOR, choices=[SIMULATOR, *MACHINES],
                        help="the simulated machine (default), or: " +
                        "; ".join(f"{name}: {what}" for name, (_, _, what) in MACHINES.items()))
    parser.add_argument("--timeout", type=int, default=300, help="of a job that is not simulated, in seconds (300)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def launcher(chosen, ranks, ranks_per_node):
    """The beginning of a command, and its environment."""
    settings, apart, _ = MACHINES[chosen.on]
    command = [os.path.join(chosen.build, "tools", "rmarun"), "-n", str(ranks), "--timeout", str(chosen.timeout)]
    if apart:
        command += ["--nodes", str(-(-ranks // ranks_per_node))]
    return command, {**os.environ, **settings}


def run(command, environment=None, shown=False):
    """What it prints, unless that is shown. Nothing goes on if it fails."""
    to = None if shown else subprocess.PIPE
    done = subprocess.run(command, env=environment, stdout=to, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout or ''}")
    return done.stdout


def out_file(chosen, name):
    """Where the page goes if --out says nothing."""
    suffix = "" if chosen.on == SIMULATOR else f"-{chosen.on}"
    return chosen.out or str(ROOT / "docs" / "results" / f"{name}{suffix}.md")


def say(line):
    print(line, file=sys.stderr, flush=True)


def hand_out(found):
    """To who has started this in a virtual host."""
    print("json " + json.dumps(found))


def hand_out_or_write(chosen, found, page):
    """Prints the measurements for the host that started this virtual host, or, by `page`, writes them into a file."""
    if chosen.inside:
        return hand_out(found)
    with open(chosen.out, "w", encoding="utf-8") as out:
        for line in page(chosen, found):
            print(line, file=out)
    return 0


def in_virtual_host(program, chosen, options):
    """What the same program hands out there."""
    command = [str(ROOT / "tests" / "softroce" / "softroce"), "--timeout", "3600", "--", sys.executable,
               os.path.abspath(program), "--on", "verbs", "--inside", "--build", os.path.abspath(chosen.build),
               "--timeout", str(chosen.timeout), *options]
    found = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        for line in host.stdout:
            if line.startswith("json "):
                found = json.loads(line[5:])
            else:
                say(line.rstrip())
    if host.returncode != 0 or found is None:
        sys.exit(f"{' '.join(command)}\nended with {host.returncode}")
    return found
