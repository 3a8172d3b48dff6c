# SPDX-License-Identifier: Apache-2.0
"""One host, from inside: the first process of namespaces of its own (network, processes, files, names, memory)."""
import os
import socket
import subprocess
from pathlib import Path

from . import OWN, SHARED, name_of
from .door import Door


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def mount_sys(aside: Path) -> None:
    """It shows the network devices of who mounts it. What is mounted on it, which Slurm looks at, is put back."""
    groups = os.path.ismount("/sys/fs/cgroup")
    if groups:
        aside.mkdir()
        run("mount", "--rbind", "/sys/fs/cgroup", str(aside))
    run("mount", "-t", "sysfs", "sys", "/sys")
    if groups:
        run("mount", "--rbind", str(aside), "/sys/fs/cgroup")


def be(number: int) -> None:
    """Does not return: the host ends with this process."""
    name = name_of(number)
    mine = SHARED / name
    mine.mkdir()
    socket.sethostname(name)
    (mine / "hostname").write_text(name + "\n", encoding="ascii")
    if Path("/etc/hostname").exists():
        run("mount", "--bind", str(mine / "hostname"), "/etc/hostname")
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "shm", "/dev/shm")
    mount_sys(mine / "cgroup")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "own", str(OWN))
    run("ip", "link", "set", "lo", "up")
    Door(name).serve()
