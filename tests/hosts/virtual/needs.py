# SPDX-License-Identifier: Apache-2.0
"""What this machine lacks of what is needed, and how it gets that."""
import os
import shutil
import subprocess

from . import CANNOT_RUN_HERE, Failure

# Program and the Debian package that has it: for all, and for each way to start ranks.
NEEDED = {
    "tcp": (("unshare", "util-linux"), ("setpriv", "util-linux"), ("mount", "mount"), ("ip", "iproute2")),
    "mpirun": (("mpirun.openmpi", "openmpi-bin"),),
    "srun": (("srun", "slurm-wlm"), ("slurmctld", "slurm-wlm"), ("munged", "munge"),
             ("/usr/lib/x86_64-linux-gnu/slurm-wlm/mpi_pmix.so", "slurm-wlm-basic-plugins")),
    "sshd": (("sshd", "openssh-server"), ("ssh", "openssh-client"), ("ssh-keygen", "openssh-client")),
}
NEEDED["srun-pmi2"] = NEEDED["srun"]
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
TRY = ("mount -t tmpfs t /dev/shm && ip link add name s type bridge forward_delay 0 && "
       "ip link add name a type veth peer name b && ip link set dev a master s")


def unshare(*what: str) -> list[str]:
    """Begin of a command that runs in namespaces of its own, and whose processes end with this one."""
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *what, "--net", "--mount", "--pid", "--ipc", "--uts", "--fork",
            "--kill-child", "--mount-proc"]


def as_root() -> list[str]:
    """Who is not root is it inside, where the kernel allows that."""
    return [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


def has(needed: str) -> bool:
    return os.path.exists(needed) if needed.startswith("/") else shutil.which(needed, path=PATH) is not None


def missing_packages(start: str) -> list[str]:
    needed = NEEDED["tcp"] + (NEEDED[start] if start != "tcp" else ())
    return sorted({package for each, package in needed if not has(each)})


def missing(start: str) -> str:
    """Why no host can be started here; nothing if one can."""
    if lacks := missing_packages(start):
        return f"missing: {', '.join(lacks)}; to get it: tests/hosts/hosts --install --start {start}"
    if start.startswith("s") and os.geteuid() != 0:
        return "Slurm's daemons and sshd need root"
    tried = subprocess.run([*unshare(*as_root()), "sh", "-c", TRY], capture_output=True, text=True, check=False,
                           stdin=subprocess.DEVNULL, env={**os.environ, "PATH": PATH})
    if tried.returncode == 0:
        return ""
    last = (tried.stderr.strip() or "without a word").splitlines()[-1]
    return f"no namespaces with an Ethernet of their own ({last}); it needs root, or user namespaces and veth"


def install(start: str) -> None:
    packages = missing_packages(start)
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise Failure(f"can install on Debian only; {missing(start)}", CANNOT_RUN_HERE)
    print("hosts: installing", *packages, flush=True)
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    # Run level 1: what the packages bring is not started on this machine.
    apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get", "-q"]
    for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run([*apt, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            last = (done.stderr.strip() or "without a word").splitlines()[-1]
            raise Failure(f"installing failed: {last}", CANNOT_RUN_HERE)
