# SPDX-License-Identifier: Apache-2.0
"""What a guest is told to do: the second half of its first process (guest_job.sh), with settings before it."""
import os
import pwd
import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

GUEST_JOB = Path(__file__).with_name("guest_job.sh")
NETWORK = "10.82.67"
# Variables that are true of this machine and not of a guest.
NOT_PASSED_ON = re.compile(r"HOME|USER|LOGNAME|MAIL|PWD|OLDPWD|SHLVL|_|TMPDIR|TERM|DISPLAY|(XDG|SSH|DBUS|SUDO)_.*")


@dataclass(frozen=True)
class Job:
    command: tuple[str, ...]
    hosts: int
    user: str
    memlock_kib: int | None  # None: no limit
    has_out: bool

    def script(self, host: int) -> bytes:
        """For that host's first process, with its length before it."""
        # The guest's clock is set in whole seconds; files of this machine shall not be of its future.
        settings = {"host": host, "hosts": self.hosts, "network": NETWORK, "now": int(time.time()) + 1,
                    "has_out": int(self.has_out), "command": self.command_script(host)}
        lines = [f"{name}={shlex.quote(str(value))}" for name, value in settings.items()]
        script = "\n".join([*lines, GUEST_JOB.read_text(encoding="utf-8")])
        # An environment may hold any bytes.
        encoded = script.encode(errors="surrogateescape")
        return b"%d\n%b" % (len(encoded), encoded)

    def command_script(self, host: int) -> str:
        """Becomes the command, below the machine's root."""
        limit = "unlimited" if self.memlock_kib is None else self.memlock_kib
        exports = [f"export {name}={shlex.quote(value)}" for name, value in self.environment(host).items()]
        change = ["setpriv", f"--reuid={self.user}", "--regid", str(pwd.getpwnam(self.user).pw_gid), "--init-groups",
                  "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if self.user != "root" else []
        return "\n".join([f"ulimit -l {limit}", *exports, f"cd {shlex.quote(os.getcwd())} || exit 125",
                          f"exec {shlex.join([*change, *self.command])}"])

    def environment(self, host: int) -> dict[str, str]:
        passed_on = {name: value for name, value in os.environ.items()
                     if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not NOT_PASSED_ON.fullmatch(name)}
        home = pwd.getpwnam(self.user).pw_dir
        addresses = {f"SOFTROCE_ADDRESS{i}": f"{NETWORK}.{i + 1}" for i in range(self.hosts)}
        return {**passed_on, "HOME": home, "USER": self.user, "LOGNAME": self.user, "SOFTROCE_HOST": str(host),
                "SOFTROCE_HOSTS": str(self.hosts), **addresses}
