# SPDX-License-Identifier: Apache-2.0
"""The parts of softroce.

command_line  what was asked for, and the order of things
machine       what this machine has
needs         what it lacks, in words; how it gets that
image         kernel and initial file system, made once
guest         one virtual host: the emulator's process and the channels to it
snapshot      a guest that has booted, kept so that the next one need not boot
job           what a guest is told to do
session       COMMAND on all hosts: its output, its statuses, the time limit
"""
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent))

from commands import CANNOT_RUN_HERE, HOST_FAILED, SKIPPED, TIMED_OUT, WRONG_USAGE, Failure  # noqa: E402, F401


class DidNotBoot(Failure):
    """A host that never got as far as to wait for its job; another way to start it may do."""
