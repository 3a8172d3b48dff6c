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


class Failure(Exception):
    """softroce itself cannot go on: why, in one line, and its exit status."""

    def __init__(self, why: str, status: int):
        super().__init__(why)
        self.status = status


class DidNotBoot(Failure):
    """A host that never got as far as to wait for its job; another way to start it may do."""


# Exit statuses of softroce; others are COMMAND's.
WRONG_USAGE = 2
CANNOT_RUN_HERE = 3
SKIPPED = 77
TIMED_OUT = 124
HOST_FAILED = 125
