# SPDX-License-Identifier: Apache-2.0
"""The kernel, and the initial file system with its modules. Both are made once and kept in the cache."""
import hashlib
import lzma
import os
import shutil
import stat
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

from . import CANNOT_RUN_HERE, Failure, machine

# In the order of loading, after what each depends on.
MODULES = ("virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "overlay", "crc32_generic",
           "crc32c_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm")
GUEST_INIT = Path(__file__).with_name("guest_init.sh")


def kernel() -> Path | None:
    """The folder of the newest kernel here, which is named after its version."""
    kernels = list((machine.cache() / "kernels").glob("*/boot-me"))
    return max(kernels, key=lambda path: path.stat().st_mtime).parent if kernels else None


def boot_file() -> Path:
    return kernel() / "boot-me"


def add_kernel(root: Path, version: str) -> None:
    """Takes what is needed of a package that was unpacked at `root`."""
    kernels = machine.cache() / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=kernels) as folder:
        new = Path(folder) / version
        new.mkdir()
        copy_modules(root, version, new / "modules")
        packed = (root / f"boot/vmlinuz-{version}").read_bytes()
        config = (root / f"boot/config-{version}").read_text(encoding="utf-8")
        (new / "boot-me").write_bytes((unpacked(packed) if "CONFIG_PVH=y" in config else None) or packed)
        shutil.rmtree(kernels / version, ignore_errors=True)
        new.rename(kernels / version)


def copy_modules(root: Path, version: str, to: Path) -> None:
    subprocess.run([machine.find("depmod"), "-b", root, version], check=True)
    to.mkdir()
    for module in MODULES:
        asked = subprocess.run([machine.find("modprobe"), "-d", root, "-S", version, "--show-depends", module],
                               capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            raise Failure(f"Linux {version} has no module {module}", CANNOT_RUN_HERE)
        for path in (Path(line.split()[1]) for line in asked.stdout.splitlines() if line.startswith("insmod")):
            name = path.name.split(".")[0]
            if not list(to.glob(f"*-{name}.ko")):
                data = path.read_bytes()
                data = lzma.decompress(data) if path.suffix == ".xz" else data
                (to / f"{len(list(to.iterdir())):02}-{name}.ko").write_bytes(data)


def unpacked(packed: bytes) -> bytes | None:
    """The kernel inside a bzImage: an emulator that starts it directly saves the time of unpacking it in the guest.

    The offsets are those of Linux' x86 boot protocol. None if the kernel is packed in a way that is not known here.
    """
    (start, length), setup_sectors = struct.unpack_from("<II", packed, 0x248), packed[0x1f1] or 4
    payload = packed[(setup_sectors + 1) * 512 + start:][:length]
    if payload.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(payload)
    return None


def initial_file_system() -> Path:
    """The archive that the kernel unpacks at its start; made if there is none yet of these parts."""
    version, busybox = kernel(), machine.find("busybox")
    parts = [version.name, machine.file_identity(boot_file()), machine.file_identity(busybox),
             GUEST_INIT.read_text(encoding="utf-8"), Path(__file__).read_text(encoding="utf-8")]
    path = version / f"initrd-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"
    if not path.exists():
        archive = Archive()
        for folder in ("bin", "dev", "proc", "sys", "modules"):
            archive.add(folder, stat.S_IFDIR | 0o755)
        archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        archive.add("bin/busybox", stat.S_IFREG | 0o755, Path(busybox).read_bytes())
        archive.add("init", stat.S_IFREG | 0o755, GUEST_INIT.read_bytes())
        for module in sorted((version / "modules").iterdir()):
            archive.add(f"modules/{module.name}", stat.S_IFREG | 0o644, module.read_bytes())
        for old in version.glob("initrd-*"):
            old.unlink(missing_ok=True)
        write_whole(path, archive.finished())
    return path


class Archive:
    """A cpio archive of the format "newc"."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.entries = 0

    def add(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self.entries += 1
        encoded = name.encode() + b"\0"
        numbers = (self.entries, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        self.data += b"070701" + b"".join(b"%08X" % number for number in numbers) + encoded
        self.pad()
        self.data += content
        self.pad()

    def pad(self) -> None:
        self.data += bytes(-len(self.data) % 4)

    def finished(self) -> bytes:
        self.add("TRAILER!!!", 0)
        return bytes(self.data)


def write_whole(path: Path, data: bytes) -> None:
    """Others see the whole file or none."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.replace(file.name, path)
