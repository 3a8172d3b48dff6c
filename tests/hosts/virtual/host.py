# SPDX-License-Identifier: Apache-2.0
"""One host, from inside: the first process of namespaces of its own (network, processes, files, names, memory)."""
import socket
import subprocess
from pathlib import Path

from . import OWN, SHARED, name_of
from .door import Door


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


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
    run("mount", "-t", "sysfs", "sys", "/sys")  # it shows the network devices of who mounts it
    run("mount", "-t", "tmpfs", "-o", "mode=755", "own", str(OWN))
    run("ip", "link", "set", "lo", "up")
    Door(name).serve()
