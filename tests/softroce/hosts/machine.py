# SPDX-License-Identifier: Apache-2.0
"""What this machine has."""
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

EMULATOR = "qemu-system-x86_64"


def cache() -> Path:
    """Where kernels, initial file systems and snapshots are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "rma-softroce"


def find(program: str) -> str | None:
    """Where a program is; those of the system too, which are not on the path of every user."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def is_static(program: str) -> bool:
    """Whether it runs without the libraries of a root file system: an ELF file that names no dynamic linker."""
    with open(program, "rb") as file:
        head = file.read(4096)
    return head[:4] == b"\x7fELF" and b"/ld-linux" not in head


def is_right_kind() -> bool:
    return platform.machine() == "x86_64" and platform.system() == "Linux"


def may_open_kvm() -> bool:
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def can_virtualize() -> bool:
    """Whether KVM is worth a try: a device that may be opened, on a processor that says that it can."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        flags = re.search(r"^flags\s*:.*\b(vmx|svm)\b", file.read(), re.MULTILINE)
    return flags is not None and may_open_kvm()


def processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        model = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    return model.group(1) if model else "unknown"


def emulator_version() -> str:
    said = subprocess.run([find(EMULATOR) or EMULATOR, "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0].removeprefix("QEMU emulator version ")


def file_identity(path: str | Path) -> str:
    """Changes when the file does."""
    info = os.stat(path)
    return f"{os.path.realpath(path)} {info.st_size} {info.st_mtime_ns}"


def accelerators(asked: str) -> list[str]:
    """What to try, in this order."""
    if asked != "auto":
        return [asked]
    return ["kvm", "tcg"] if can_virtualize() else ["tcg"]
