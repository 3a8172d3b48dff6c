#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nwchem.py [--mpirun MPIRUN] [--ranks N ...] STARTER scf|ccsd|killed

Debian's nwchem.openmpi, unmodified, with its windows taken over: STARTER is the path of rma-mpi.

scf, ccsd   Goal: its energies are those of Open MPI alone, on one node and on two virtual hosts. Method: three runs
            without the library say how far its energies vary, since ranks add in any order; each run with it is at
            most that, or 1e-8 hartree, away from one of them. Break: in direct.cpp, let apply_striped leave out its
            last element.
killed      Goal: a rank that is killed in the middle ends the job and leaves nothing behind. Method: in a virtual host,
            whose processes and shared memory can be told from others'. Break: give the ranks' segments names.

It exits with 77 where nwchem.openmpi or virtual hosts are missing.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HOSTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "hosts", "hosts")
TOLERANCE_HARTREE = 1e-8
RUN_LIMIT_S = 600
END_LIMIT_S = 60

GEOMETRY = """start water
geometry units angstroms
  O  0.000  0.000  0.117
  H  0.000  0.757 -0.469
  H  0.000 -0.757 -0.469
end
"""
INPUTS = {
    "scf": (GEOMETRY + "basis\n  * library 6-31G*\nend\ntask scf\n", r"Total SCF energy =\s+(-\d+\.\d+)"),
    "ccsd": (GEOMETRY + "basis\n  * library 6-31G\nend\nscf\n  thresh 1e-10\nend\n"
             "tce\n  ccsd\n  thresh 1e-9\nend\ntask tce energy\n", r"CCSD total energy / hartree\s+=\s+(-\d+\.\d+)"),
}
IN_THE_MIDDLE = "CCSD iterations"


def job(arguments, ranks, hosts):
    """The command line of a run with the library; on one node if `hosts` is 0."""
    if hosts == 0:
        return [arguments.mpirun, "-n", str(ranks), arguments.starter, "nwchem.openmpi"]
    return [sys.executable, HOSTS, "--hosts", str(hosts), "-n", str(ranks), "--start", "mpirun", "--timeout",
            str(RUN_LIMIT_S), "--", arguments.starter, "nwchem.openmpi"]


def energy(command, name):
    """Runs NWChem in a folder of its own; the energy that it prints, and whether its windows were taken over."""
    text, pattern = INPUTS[name]
    with tempfile.TemporaryDirectory(prefix="nwchem_") as folder:
        path = os.path.join(folder, "water.nw")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(command + [path], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=RUN_LIMIT_S, check=False)
    found = re.search(pattern, done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-3000:]}")
    return float(found.group(1)), re.search(r"[1-9]\d* windows taken over, 0 left", done.stdout) is not None


def energy_alone(arguments, ranks):
    """By Open MPI alone, of which a run now and then stands still in its own MPI_Win_allocate."""
    for _ in range(3):
        try:
            return energy([arguments.mpirun, "-n", str(ranks), "nwchem.openmpi"], arguments.case)[0]
        except subprocess.TimeoutExpired:
            print(f"a run of Open MPI alone did not end within {RUN_LIMIT_S} s, and is repeated", flush=True)
    sys.exit("Open MPI alone does not end")


def compare(arguments):
    wrong = 0
    for ranks in arguments.ranks:
        alone = [energy_alone(arguments, ranks) for _ in range(3)]
        spread = max(alone) - min(alone)
        print(f"{arguments.case}, {ranks} ranks: {alone[0]:.12f} hartree, 3 runs differ by {spread:.1e}", flush=True)
        for hosts in (0, 2):
            value, taken_over = energy(job(arguments, ranks, hosts), arguments.case)
            away = min(abs(value - each) for each in alone)
            fits = away <= max(spread, TOLERANCE_HARTREE) and taken_over
            wrong += not fits
            where = "2 hosts" if hosts else "one node"
            remark = ("" if taken_over else ", its windows were not taken over") + ("" if fits else ": WRONG")
            print(f"  with rma, {where}: {value:.12f}, {away:.1e} away{remark}", flush=True)
    return wrong


def programs():
    """The numbers of the processes of NWChem in this host."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.basename(os.readlink(f"/proc/{number}/exe")).startswith("nwchem"):
                found.append(int(number))
        except OSError:
            continue
    return sorted(found)


def kill_one(arguments, folder):
    """Runs inside a virtual host."""
    path = os.path.join(folder, "water.nw")
    with open(path, "w", encoding="utf-8") as file:
        file.write(INPUTS["ccsd"][0])
    command = [arguments.mpirun, "--mca", "orte_tmpdir_base", folder] + job(arguments, 4, 0)[1:] + [path]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as running:
        for line in running.stdout:
            if IN_THE_MIDDLE in line:
                victim = programs()[-1]
                os.kill(victim, signal.SIGKILL)
                break
        else:
            sys.exit("the job ended before it was in the middle")
        running.stdout.read()
        status = running.wait(timeout=END_LIMIT_S)
    left = [name for name in os.listdir("/dev/shm") if "rma" in name]
    if status == 0 or left or programs():
        sys.exit(f"exit status {status}, left in /dev/shm: {left}, processes: {programs()}")
    print(f"killed: the job ended with status {status}, and left nothing behind")


def run_in_host(arguments):
    command = [sys.executable, HOSTS, "--hosts", "1", "--once", "--timeout", str(RUN_LIMIT_S), "--",
               sys.executable, os.path.realpath(__file__), "--mpirun", arguments.mpirun, "--inside", arguments.starter,
               "killed"]
    return subprocess.run(command, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpirun", default="mpirun.openmpi", help="Open MPI's")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], help="on each of these numbers (2 4)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("starter", help="the path of rma-mpi")
    parser.add_argument("case", choices=["scf", "ccsd", "killed"])
    arguments = parser.parse_args()
    if shutil.which("nwchem.openmpi") is None:
        print("skipped: no nwchem.openmpi here (Debian's package nwchem-openmpi)")
        return 77
    if arguments.inside:
        with tempfile.TemporaryDirectory(prefix="nwchem_") as folder:
            kill_one(arguments, folder)
        return 0
    if subprocess.run([sys.executable, HOSTS, "--check"], check=False).returncode != 0:
        print("skipped: no virtual hosts here (tests/hosts)")
        return 77
    if arguments.case == "killed":
        return run_in_host(arguments)
    return 1 if compare(arguments) else 0


if __name__ == "__main__":
    sys.exit(main())
