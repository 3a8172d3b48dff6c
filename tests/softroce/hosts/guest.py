# SPDX-License-Identifier: Apache-2.0
"""One virtual host: the emulator's process and the channels to it."""
import json
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import HOST_FAILED, DidNotBoot, Failure, machine

# The output of kernel and emulator; orders and answers (guest_job.sh); what the command prints; the emulator's monitor.
CHANNELS = ("console", "control", "out", "err", "monitor")
PORTS = ("control", "out", "err")
LAST_WORDS = 6000
NO_CABLE = "is not connected to host network"  # a warning that is true of a single host, and of no use
# The time stamp counters of emulated processors are in step. Linux does not believe it and would use a slower clock.
KERNEL_OPTIONS = {"kvm": "console=ttyS0 quiet panic=-1"}
KERNEL_OPTIONS["tcg"] = KERNEL_OPTIONS["kvm"] + " mitigations=off init_on_alloc=0 selinux=0 apparmor=0 tsc=reliable"


@dataclass(frozen=True)
class Shape:
    """What guests of one job have in common, and what a snapshot depends on."""
    accelerator: str
    cpus: int
    memory_mib: int
    kernel: Path
    initial_file_system: Path

    def arguments(self) -> list[str]:
        # Linux copies by `rep movsb` where that is fast. The emulator moves a byte at a time.
        processor = "host" if self.accelerator == "kvm" else "max,la57=off,erms=off"
        device_list = ["virtio-serial-pci",
                       *(f"virtserialport,chardev={name},nr={nr}" for nr, name in enumerate(PORTS, 1)),
                       "virtio-net-pci,netdev=ethernet,mac=52:54:00:52:43:00,romfile=",
                       "virtio-9p-pci,fsdev=root,mount_tag=root", "virtio-9p-pci,fsdev=out,mount_tag=out",
                       # Tells a guest that was made of a snapshot to begin another sequence of random numbers.
                       "vmgenid,guid=auto"]
        return ["-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-machine", "pc,usb=off,vmport=off",
                "-accel", self.accelerator, "-cpu", processor, "-smp", str(self.cpus), "-m", f"{self.memory_mib}M",
                "-kernel", str(self.kernel), "-initrd", str(self.initial_file_system),
                "-append", KERNEL_OPTIONS[self.accelerator], "-serial", "chardev:console",
                *(word for device in device_list for word in ("-device", device))]


class Guest:
    """Runs from its construction to kill()."""

    def __init__(self, index: int, shape: Shape, links: list[socket.socket], out: Path | None = None,
                 more: tuple[str, ...] = ()):
        self.index = index
        self.has_booted = False
        self.last_words = b""
        self.channels: dict[str, socket.socket] = {}
        theirs = {}
        for name in CHANNELS:
            self.channels[name], theirs[name] = socket.socketpair()
        # If softroce dies without a chance to clean up, the guest does, too.
        command = [machine.find("setpriv"), "--pdeathsig", "KILL", machine.find(machine.EMULATOR), *shape.arguments(),
                   "-mon", "chardev=monitor,mode=control", *file_systems(out), *ethernet(links), *more]
        for name, end in theirs.items():
            command += ["-chardev", f"socket,id={name},fd={end.fileno()}"]
        inherited = [end.fileno() for end in (*theirs.values(), *links)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs["console"],
                                        stderr=theirs["console"], pass_fds=inherited, start_new_session=True)
        for end in theirs.values():
            end.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for channel in self.channels.values():
            channel.close()

    def heard(self, text: bytes) -> None:
        """Keeps the end of what the console said, to be shown should the guest die."""
        self.last_words = (self.last_words + text)[-LAST_WORDS:]

    def failure(self, what: str) -> Failure:
        """What befell it."""
        kind = Failure if self.has_booted else DidNotBoot
        return kind(f"host {self.index} {what}{self.console()}", HOST_FAILED)

    def console(self) -> str:
        """The last words of its kernel and of the emulator, if there are any."""
        console = self.channels["console"]
        console.setblocking(False)
        try:
            while text := console.recv(65536):
                self.heard(text)
        except OSError:
            pass
        lines = (line.strip() for line in self.last_words.decode(errors="replace").splitlines())
        told = "".join(f"\n  {line}" for line in lines if line and NO_CABLE not in line)
        return f"; on the console of host {self.index}:{told}" if told else ""


def file_systems(out: Path | None) -> list[str]:
    root = "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
    # A guest always has both devices: a snapshot fits any job.
    shared = f"local,id=out,path={escaped(out)},security_model=none" if out else root.replace("id=root", "id=out")
    return ["-fsdev", root, "-fsdev", shared]


def escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


def ethernet(links: list[socket.socket]) -> list[str]:
    """A hub that the guest's card and all links are plugged into."""
    words = ["-netdev", "hubport,id=ethernet,hubid=0"]
    for i, link in enumerate(links):
        words += ["-netdev", f"socket,id=link{i},fd={link.fileno()}",
                  "-netdev", f"hubport,id=port{i},hubid=0,netdev=link{i}"]
    return words


class Monitor:
    """The emulator's monitor (QMP): commands in, answers and events out."""

    def __init__(self, guest: Guest, patience_s: float):
        self.guest = guest
        channel = guest.channels["monitor"]
        channel.settimeout(patience_s)
        self.stream = channel.makefile("rw", encoding="utf-8", errors="replace")
        self.send("qmp_capabilities")

    def send(self, command: str, **arguments: object) -> None:
        """Answers come in the order of commands, so that one need not wait for each."""
        try:
            self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
            self.stream.flush()
        except OSError as error:
            raise self.guest.failure("died") from error

    def wait_for(self, event: str, **data: object) -> None:
        """Fails if the emulator refuses a command, ends or says nothing before the event."""
        try:
            for line in self.stream:
                said = json.loads(line)
                if "error" in said:
                    raise self.guest.failure(f"was refused: {said['error']['desc']}")
                if said.get("event") == event and data.items() <= said.get("data", {}).items():
                    return
        except OSError as error:
            raise self.guest.failure(f"does not answer: {error}") from error
        raise self.guest.failure("died")
