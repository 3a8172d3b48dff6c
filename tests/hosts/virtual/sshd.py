# SPDX-License-Identifier: Apache-2.0
"""An sshd on each host, and the client's settings to reach it without a password: ssh -F /run/hosts/ssh_config. Keys
are made for each start, in the file system that the hosts share, and go with it."""
import os
import subprocess
from pathlib import Path

from . import HOST_FAILED, SHARED, Failure, address_of, door, name_of

CONFIGURATION = SHARED / "sshd_config"
CLIENT = SHARED / "ssh_config"
SERVER_TEXT = """HostKey {shared}/host_key
AuthorizedKeysFile {shared}/user_key.pub
PidFile none
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
StrictModes no
"""
CLIENT_TEXT = """Host *
IdentityFile {shared}/user_key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
"""


def is_daemon(words: str) -> bool:
    return os.path.basename(words.replace(":", " ").split()[0]) == "sshd"


def start(hosts: int) -> None:
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it for its unprivileged half
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(SHARED / name)], check=True,
                       stdin=subprocess.DEVNULL)
    CONFIGURATION.write_text(SERVER_TEXT.format(shared=SHARED), encoding="ascii")
    CLIENT.write_text(CLIENT_TEXT.format(shared=SHARED), encoding="ascii")
    null = os.open(os.devnull, os.O_RDWR)
    for host in range(hosts):
        # As a child of the host's first process sshd would take itself for a daemon that is in the background already.
        words = ["sh", "-c", f"/usr/sbin/sshd -f {CONFIGURATION} -o ListenAddress={address_of(host)}; exit $?"]
        if status := door.Command(name_of(host), words, dict(os.environ), (null, null, 2)).status():
            raise Failure(f"sshd on {name_of(host)} does not start (status {status})", HOST_FAILED)
    os.close(null)
