# SPDX-License-Identifier: Apache-2.0
"""The jobs of simulated ranks that pages of docs/results are made from."""
import os


def command(build, ranks, ranks_per_node, machine, settings=()):
    """The beginning of a command, to which program and arguments are added.

    Ranks have no progress threads, since those of the papers' libraries had none: a rank that computes serves nobody.
    `settings` may turn them on.
    """
    words = [os.path.join(build, "tools", "rma-sim"), "-n", str(ranks), "--ranks-per-node", str(ranks_per_node),
             "--params", machine]
    for setting in ("RMA_PROGRESS_THREAD=0", *settings):
        words += ["-x", setting]
    return words
