# SPDX-License-Identifier: Apache-2.0
"""A guest that has booted and waits for its job, kept in two files, so that the next one need not boot.

`memory` is the guest's memory as the emulator mapped it: who starts from it maps it privately, so that nothing is read
or copied before the guest touches it. `state` is the rest, as the emulator writes it for a migration.
"""
import contextlib
import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from . import machine
from .guest import Guest, Monitor, Shape, escaped

BOOT_LIMIT_S = 120
ANSWER_LIMIT_S = 60
UNUSED_LIMIT_S = 14 * 86400


def snapshots() -> Path:
    return machine.cache() / "snapshots"


def identity(shape: Shape) -> str:
    """Changes with all that a snapshot depends on: emulator, devices, kernel; and the clock of this processor."""
    parts = [machine.file_identity(machine.find(machine.EMULATOR)), machine.file_identity(shape.kernel),
             shape.arguments(), machine.processor(), platform.node()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def memory(shape: Shape, path: Path, shared: bool) -> tuple[str, ...]:
    backend = f"memory-backend-file,id=memory,size={shape.memory_mib}M,mem-path={escaped(path)}"
    return "-object", f"{backend},share={'on' if shared else 'off'}", "-machine", "memory-backend=memory"


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """Two that need the same snapshot do not both make it."""
    snapshots().mkdir(parents=True, exist_ok=True)
    with open(snapshots() / "lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def find(shape: Shape) -> Path | None:
    path = snapshots() / identity(shape)
    if not (path / "state").exists():
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return path


def find_or_make(shape: Shape, deadline: float) -> Path:
    """The folder of the snapshot of this shape."""
    with lock():
        if found := find(shape):
            return found
        forget_old()
        with tempfile.TemporaryDirectory(prefix=".new-", dir=snapshots()) as new:
            make(shape, Path(new), deadline)
            path = snapshots() / identity(shape)
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            for name in ("memory", "state"):
                os.replace(Path(new) / name, path / name)
    return path


def forget_old() -> None:
    for path in snapshots().iterdir():
        if path.is_dir() and path.stat().st_mtime < time.time() - UNUSED_LIMIT_S:
            shutil.rmtree(path, ignore_errors=True)


def make(shape: Shape, folder: Path, deadline: float) -> None:
    guest = Guest(0, shape, [], more=memory(shape, folder / "memory", shared=True))
    try:
        wait_until_ready(guest, min(BOOT_LIMIT_S, deadline - time.monotonic()))
        monitor = Monitor(guest, ANSWER_LIMIT_S)
        monitor.send("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True},
                                                               {"capability": "events", "state": True}])
        monitor.send("migrate", uri=f"exec:cat > {shlex.quote(str(folder / 'state'))}")
        monitor.wait_for("MIGRATION", status="completed")
    finally:
        guest.kill()


def wait_until_ready(guest: Guest, limit_s: float) -> None:
    control = guest.channels["control"]
    control.settimeout(max(limit_s, 0.001))
    try:
        said = control.recv(64)
    except OSError as error:
        raise guest.failure(f"did not boot within {limit_s:.0f} s") from error
    if said != b"ready\n":
        raise guest.failure("did not boot")


def arguments(shape: Shape, path: Path) -> tuple[str, ...]:
    """What a guest needs to start from a snapshot; it waits for wake()."""
    return (*memory(shape, path / "memory", shared=False), "-incoming", "defer")


def wake(guests: list[Guest], path: Path) -> None:
    monitors = [Monitor(guest, ANSWER_LIMIT_S) for guest in guests]
    for monitor in monitors:
        monitor.send("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])
        monitor.send("migrate-incoming", uri=f"exec:cat {shlex.quote(str(path / 'state'))}")
    for monitor in monitors:
        monitor.wait_for("RESUME")


def discard(path: Path) -> None:
    """One that does not start is worth nothing."""
    with lock(), contextlib.suppress(OSError):
        shutil.rmtree(path)
