# SPDX-License-Identifier: Apache-2.0
"""What this machine lacks of what is needed, and how it gets that."""
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import CANNOT_RUN_HERE, Failure, image, machine

# Program or file, and the Debian package that has it.
NEEDED = (
    (machine.EMULATOR, "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("modprobe", "kmod"),
    ("rdma", "iproute2"),
    ("setpriv", "util-linux"),
    ("ibv_devinfo", "ibverbs-utils"),
    ("/etc/libibverbs.d/rxe.driver", "ibverbs-providers"),
)
HOW = "tests/softroce/softroce --install"


def has(needed: str) -> bool:
    if needed.startswith("/"):
        return os.path.exists(needed)
    found = machine.find(needed)
    return found is not None and (needed != "busybox" or machine.is_static(found))


def missing_packages() -> list[str]:
    return [package for needed, package in NEEDED if not has(needed)]


def missing() -> str:
    """Why no host can be started here; nothing if one can."""
    if not machine.is_right_kind():
        return "the hosts are x86-64 Linux, and so must this machine be"
    lacks = missing_packages()
    if image.kernel() is None:
        lacks.append(f"a kernel in {machine.cache()}")
    return f"missing: {', '.join(lacks)}; to get it: {HOW}" if lacks else ""


def description() -> str:
    """One line about what would be used."""
    how = "KVM" if machine.can_virtualize() else "an emulated processor"
    return f"Linux {image.kernel().name} in QEMU {machine.emulator_version()} with {how}"


def install() -> None:
    """Packages and kernel, unless they are there."""
    if not shutil.which("apt-get"):
        raise Failure(f"can install on Debian only; {missing()}", CANNOT_RUN_HERE)
    if packages := missing_packages():
        install_packages(packages)
    if image.kernel() is None:
        try:
            unpack_kernel()
        except Failure:  # the lists of packages may be old
            update_lists()
            unpack_kernel()


def install_packages(packages: list[str]) -> None:
    print("softroce: installing", *packages, flush=True)
    command = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-q", "-y", "--no-install-recommends"]
    update_lists()
    run([*as_root(" ".join(packages)), *command, *packages])


def update_lists() -> None:
    run([*as_root("the lists of packages"), "apt-get", "update", "-q"])


def as_root(what: str) -> list[str]:
    """What to put before a command that only root may run."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return ["sudo", "-n"]
    raise Failure(f"installing needs root (for {what})", CANNOT_RUN_HERE)


def unpack_kernel() -> None:
    package = re.search(r"Depends: (linux-image-\S+)", run(["apt-cache", "depends", "linux-image-amd64"]))
    if not package:
        raise Failure("apt knows no kernel (linux-image-amd64)", CANNOT_RUN_HERE)
    print(f"softroce: unpacking {package.group(1)} into {machine.cache()}", flush=True)
    machine.cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=machine.cache()) as folder:
        run(["apt-get", "download", "-q", package.group(1)], folder)
        deb, = Path(folder).glob("*.deb")
        run(["dpkg", "-x", str(deb), f"{folder}/root"])
        image.add_kernel(Path(folder) / "root", package.group(1).removeprefix("linux-image-"))


def run(command: list[str], folder: str | None = None) -> str:
    """What a command prints; a failure is said with its last line."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=folder)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "without a word").splitlines()[-1]
        raise Failure(f"'{' '.join(command)}' failed: {last}", CANNOT_RUN_HERE)
    return done.stdout
