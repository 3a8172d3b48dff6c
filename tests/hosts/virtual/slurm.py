# SPDX-License-Identifier: Apache-2.0
"""A Slurm of these hosts, all run by root and started by hand: munged and slurmd on each, slurmctld on the first. What
they write is in the file system that the hosts share, and goes with them."""
import argparse
import os
import secrets
import time
from pathlib import Path

from . import HOST_FAILED, OWN, SHARED, Failure, address_of, door, name_of

STARTS = {"srun": "--mpi=pmix", "srun-pmi2": "--mpi=pmi2"}
ENVIRONMENT = {"srun": {}, "srun-pmi2": {"RMA_BOOT": "pmi2"}}
DAEMONS = {"munged", "slurmctld", "slurmscriptd", "slurmd", "slurmstepd"}
CONFIGURATION = SHARED / "slurm.conf"
PATIENCE_S = 30
MEMORY_MIB = 512

TEXT = """ClusterName=hosts
SlurmctldHost={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={own}/munge
CredType=cred/munge
CryptoType=crypto/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
ReturnToService=2
StateSaveLocation={shared}/state
SlurmdSpoolDir={shared}/%h/spool
SlurmctldPidFile={shared}/slurmctld.pid
SlurmdPidFile={shared}/%h/slurmd.pid
SlurmctldLogFile={shared}/slurmctld.log
SlurmdLogFile={shared}/%h/slurmd.log
SlurmdTimeout=300
TmpFS={own}
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def is_daemon(words: str) -> bool:
    names = words.replace(":", " ").split()  # some change how they are listed: "slurmstepd: [1.0]"
    return bool(names) and os.path.basename(names[0]) in DAEMONS


def srun(options: argparse.Namespace) -> list[str]:
    """A step ends only if its processes do, as with other launchers here."""
    per_host = -(-options.ranks // options.hosts)
    return ["srun", STARTS[options.start], "--kill-on-bad-exit=0", f"--nodes={options.hosts}",
            f"--ntasks={options.ranks}", f"--ntasks-per-node={per_host}"]


def run(host: int, words: list[str]) -> int:
    """A command on a host, its words on the standard error stream."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return door.Command(name_of(host), words, environment(), (null, null, 2)).status()
    finally:
        os.close(null)


def environment() -> dict[str, str]:
    return {**os.environ, "SLURM_CONF": str(CONFIGURATION)}


def start(hosts: int) -> None:
    os.environ["SLURM_CONF"] = str(CONFIGURATION)  # that of the ranks, too
    (SHARED / "state").mkdir()
    nodes = [f"NodeName={name_of(i)} NodeAddr={address_of(i)} CPUs=64 RealMemory={MEMORY_MIB} State=UNKNOWN"
             for i in range(hosts)]
    text = TEXT.format(first=f"{name_of(0)}({address_of(0)})", shared=SHARED, own=OWN, nodes="\n".join(nodes))
    CONFIGURATION.write_text(text, encoding="ascii")
    key = SHARED / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    for host in range(hosts):
        mine = SHARED / name_of(host)
        (mine / "spool").mkdir()
        check(host, "munged", ["munged", "--force", f"--key-file={key}", f"--socket={OWN}/munge",
                               f"--pid-file={mine}/munged.pid", f"--log-file={mine}/munged.log",
                               f"--seed-file={mine}/munged.seed"])
    check(0, "slurmctld", ["slurmctld"])
    for host in range(hosts):
        check(host, "slurmd", ["slurmd"])
    wait_for_nodes(hosts)


def check(host: int, what: str, words: list[str]) -> None:
    if status := run(host, words):
        raise Failure(f"{what} on {name_of(host)} does not start (status {status}); {last_words()}", HOST_FAILED)


def last_words() -> str:
    logs = [log for log in [SHARED / "slurmctld.log", *SHARED.glob("*/slurmd.log"), *SHARED.glob("*/munged.log")]
            if log.exists()]
    return "; ".join(f"{log.name}: {(Path(log).read_text(errors='replace').strip().splitlines() or [''])[-1]}"
                     for log in logs)


def wait_for_nodes(hosts: int) -> None:
    until = time.monotonic() + PATIENCE_S
    reading, writing = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    while time.monotonic() < until:
        done = door.Command(name_of(0), ["sinfo", "--noheader", "--Node", "--format=%T"], environment(),
                            (null, writing, null)).status()
        said = os.read(reading, 65536).split() if done == 0 else []
        if said == [b"idle"] * hosts:
            break
        time.sleep(0.1)
    else:
        raise Failure(f"Slurm's nodes do not get ready; {last_words()}", HOST_FAILED)
    for each in (reading, writing, null):
        os.close(each)
