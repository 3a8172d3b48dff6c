#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_test.py --rmarun PATH --examples FOLDER: runs examples with RMA_TRACE and reads what they leave.

Goal: every rank leaves a JSON file in which every call on a window is one complete event that says what carried it out
and why, and every operation that is not over when its call returns a pair of events from its issue to its end; with
tracing on no call takes the inlined way past the trace; the program's results stay the same.
Method: examples whose calls can be counted, with several settings.
Break: end_note at the issue; leave limits or inline_sync of a traced window as they are otherwise; count no words in
dissemination::write;
say in why_direct that all atomics are element; count one less in add_take (src/core/trace.cpp).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

RANKS = 3
PROTOCOLS = {"direct", "handler", "promised", "device", "fabric", "none", "staged", "shared", "cpu", "network",
             "network:agent", "network:fompi", "hybrid:cpu", "hybrid:manager", "hybrid:network", "memory", "messages",
             "memory fence", "acknowledgement", "generic", "multi-w",
             "placed", "two-sided", "two-sided:deferred", "deferred"}
MESSAGES = {"eager", "rdma-ring", "rput", "getcqe", "get", "putnr", "put", "stream", "sgrs"}
ALGORITHMS = {"linear", "binomial", "recursive-doubling", "ring", "bruck", "pairwise", "rabenseifner", "circulant",
              "dissemination", "chain", "hierarchical", "scatter-allgather", "one-sided",
              "flat", "direct", "tree", "window", "release-gather", "flags"}
ARROW = {"s", "f"}  # from a message's sender to its receiver, or from a signal's origin to its target
ARGS = {"window", "target", "bytes", "protocol", "why"}


class Failed(Exception):
    pass


def run(options, example, folder, ranks=RANKS, **settings):
    """The events of every rank."""
    command = [options.rmarun, "-n", str(ranks), "--timeout", "50", os.path.join(options.examples, example)]
    return events_of(command, folder, ranks, settings)


def simulate(options, example, folder, arguments=(), per_node=1, **settings):
    """The same of a simulated job, each rank on a node of its own, if nothing else is said."""
    command = [options.rma_sim, "-n", str(RANKS), "--ranks-per-node", str(per_node),
               os.path.join(options.examples, example), *arguments]
    return events_of(command, folder, RANKS, settings)


def events_of(command, folder, ranks, settings):
    environment = dict(os.environ, RMA_TRACE=os.path.join(folder, "t.%r.json"), **settings)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    shown = " ".join(f"{key}={value}" for key, value in settings.items())
    replay = f"RMA_TRACE=t.%r.json {shown} {' '.join(command)}"
    if done.returncode != 0:
        raise Failed(f"{replay}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    found = []
    for rank in range(ranks):
        with open(os.path.join(folder, f"t.{rank}.json"), encoding="utf-8") as file:
            try:
                events = json.load(file)
            except ValueError as error:
                raise Failed(f"{replay}\nfile of rank {rank}: {error}") from error
        check_operations(events, rank, replay)
        calls = [event for event in events if event.get("cat") != "operation" and event["ph"] not in ARROW
                 and event["name"] not in ("message leaves", "message arrives")]
        check_events(calls, rank, replay)
        found.append(calls[1:])
        found[-1] += [dict(event, name="operation") for event in events if event["ph"] == "b"]
    return found, replay


def check_operations(events, rank, replay):
    """Each begins once and ends once, not before."""
    begun = {}
    for event in (event for event in events if event.get("cat") == "operation"):
        if event["ph"] == "b":
            args = event["args"]
            good = (event["id"] not in begun and event["pid"] == rank and set(args) == ARGS | {"peer"}
                    and args["why"])
            if args["window"] == "messages":  # those of collectives, too, which may be of nothing
                good = good and args["protocol"] in MESSAGES and args["peer"] >= -1
            else:
                good = good and args["protocol"] in PROTOCOLS and args["peer"] >= 0 and args["bytes"] > 0
            begun[event["id"]] = event["ts"]
        else:
            good = event["ph"] == "e" and event["id"] in begun and event["ts"] >= begun.pop(event["id"])
        if not good:
            raise Failed(f"{replay}\nrank {rank}: {event}")
    if begun:
        raise Failed(f"{replay}\nrank {rank}: operations {sorted(begun)} do not end")


def check_events(events, rank, replay):
    if events[0]["ph"] != "M" or events[0]["args"]["name"] != f"rank {rank}":
        raise Failed(f"{replay}\nrank {rank} does not begin with its name: {events[0]}")
    for event in events[1:]:
        args = event["args"]
        chosen = args["protocol"] in PROTOCOLS | ALGORITHMS and args["why"]
        of_no_window = not (args["window"] or args["protocol"] or args["why"])  # the call is one of a Team or a Runtime
        good = (event["ph"] == "X" and event["pid"] == rank and event["ts"] > 0 and event["dur"] >= 0
                and set(args) == ARGS and (chosen or of_no_window) and -1 <= args["target"] < RANKS)
        if not good:
            raise Failed(f"{replay}\nrank {rank}: {event}")


def count(ranks, name, **wanted):
    """How many events of that call have these args, in all files."""
    return sum(event["name"] == name and all(event["args"][key] == value for key, value in wanted.items())
               for events in ranks for event in events)


def expect(replay, what, found, wanted):
    if found != wanted:
        raise Failed(f"{replay}\n{what}: {found}, not {wanted}")


def expect_some(replay, what, found):
    if found == 0:
        raise Failed(f"{replay}\n{what}: none")


def test_locks_and_atomics(options, folder):
    ranks, replay = run(options, "05_hash_table", folder)
    for name in ("lock_all", "unlock_all"):
        expect(replay, name, count(ranks, name, protocol="cpu"), RANKS)
    accumulates = count(ranks, "accumulate", protocol="direct", bytes=8)
    expect_some(replay, "accumulate by the direct protocol", accumulates)
    swaps = count(ranks, "compare_and_swap", protocol="direct", bytes=8)
    if swaps < accumulates:
        raise Failed(f"{replay}\n{swaps} compare_and_swap for {accumulates} accumulate")
    # Each number is counted once: none of the accumulates went past the trace.
    with open(os.path.join(options.expected, "05_hash_table.txt"), encoding="utf-8") as file:
        expect(replay, "accumulates", accumulates, int(file.read().split()[0]))


def test_handler_when_forced(options, folder):
    ranks, replay = run(options, "05_hash_table", folder, RMA_ACCUMULATE="handler")
    expect_some(replay, "accumulate by handler",
                count(ranks, "accumulate", protocol="handler", why="the handlers own atomicity"))
    expect(replay, "accumulate by memory", count(ranks, "accumulate", protocol="direct"), 0)


def test_accumulate_modes(options, folder):
    for mode, why in (("element", "mapped; element: each by a locked instruction"),
                      ("striped", "mapped; striped: under the lock of a stripe")):
        ranks, replay = run(options, "05_hash_table", folder, RMA_ACCUMULATE=mode)
        for name in ("accumulate", "compare_and_swap"):
            expect_some(replay, name, count(ranks, name))
            expect(replay, f"{name} in mode {mode}", count(ranks, name, protocol="direct", why=why),
                   count(ranks, name))


def test_fences_and_locks_of_several_nodes(options, folder):
    if options.rma_sim is None:
        return
    for barrier in ("words", "messages"):
        ranks, replay = simulate(options, "03_fence_halo", folder, RMA_BARRIER=barrier)
        expect_some(replay, f"fences by {barrier}",
                    count(ranks, "fence", protocol="placed", why=f"auto; a barrier by {barrier}"))
    ranks, replay = run(options, "03_fence_halo", folder)
    by_memory = "auto; a barrier by memory, on one node"
    expect(replay, "fences by memory", count(ranks, "fence", protocol="placed", why=by_memory), count(ranks, "fence"))
    for home, protocol in (("cpu", "hybrid:manager"), ("network", "hybrid:network")):
        ranks, replay = simulate(options, "02_put_get", folder, RMA_LOCK=f"hybrid:threshold:100:home={home}")
        expect_some(replay, "locks", count(ranks, "lock"))
        expect(replay, f"hybrid locks at home {home}", count(ranks, "lock", protocol=protocol, why="RMA_LOCK"),
               count(ranks, "lock"))


def test_deferred_locks(options, folder):
    """An epoch that is deferred says so, and by what."""
    if options.rma_sim is None:
        return
    table = ("--variant", "acc", "--epoch", "update", "--log2-table", "10")
    for program, arguments, setting, protocol, why in (
            ("02_put_get", (), "two-sided", "two-sided", "RMA_LOCK"),
            ("02_put_get", (), "two-sided:deferred", "two-sided:deferred", "RMA_LOCK=two-sided:deferred"),
            ("random_access", table, "two-sided", "two-sided:deferred", "Hints::lock is deferred"),
            ("02_put_get", (), "auto:deferred", "two-sided:deferred",
             "auto: the lock manager has answered well; RMA_LOCK=auto:deferred")):
        ranks, replay = simulate(options, program, folder, arguments, per_node=2, RMA_LOCK=setting)
        found = count(ranks, "lock", protocol=protocol, why=why)
        expect_some(replay, f"locks of protocol {protocol} because of {why}", found)
        expect(replay, f"unlocks of protocol {protocol}", count(ranks, "unlock", protocol=protocol, why=why), found)


def test_put_get(options, folder):
    ranks, replay = run(options, "02_put_get", folder)
    for name in ("put", "get", "fence", "lock", "unlock"):
        expect_some(replay, name, count(ranks, name))
    expect(replay, "lock and unlock", count(ranks, "lock") - count(ranks, "unlock"), 0)
    ranks, replay = run(options, "02_put_get", folder, RMA_INTRANODE="off")
    expect_some(replay, "put by the fabric", count(ranks, "put", protocol="fabric", why="RMA_INTRANODE=off"))
    expect_some(replay, "fence by messages", count(ranks, "fence", why="auto; a barrier by messages"))
    expect_some(replay, "lock by the network", count(ranks, "lock", protocol="network"))
    ranks, replay = run(options, "02_put_get", folder, RMA_LOCK="network:fompi")
    expect(replay, "locks of another scheme",
           count(ranks, "lock", protocol="network:fompi", why="RMA_LOCK"), count(ranks, "lock"))


def test_operations_end_after_their_calls(options, folder):
    if options.rma_sim is None:
        return
    command = [options.rma_sim, "-n", "2", "--ranks-per-node", "1", os.path.join(options.examples, "02_put_get")]
    _, replay = events_of(command, folder, 2, {"RMA_LOCK": "network"})
    with open(os.path.join(folder, "t.0.json"), encoding="utf-8") as file:
        events = json.load(file)
    puts = [event for event in events if event["name"] == "put" and event["ph"] == "X"]
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    begins = [event for event in events if event["ph"] == "b" and event["name"] == "put"]
    expect_some(replay, "puts between nodes", len(begins))
    for begin in begins:
        call = [put for put in puts if put["ts"] <= begin["ts"] <= put["ts"] + put["dur"]]
        expect(replay, "calls of a put", len(call), 1)
        if call and ends[begin["id"]] <= call[0]["ts"] + call[0]["dur"]:
            raise Failed(f"{replay}\na put ends with its call: {begin}")


def test_user_memory(options, folder):
    for setting, protocol in (("handler", "handler"), ("cma", "fabric")):
        ranks, replay = run(options, "07_user_memory", folder, RMA_USER_MEMORY=setting)
        found = count(ranks, "put", protocol=protocol, why=f"RMA_USER_MEMORY={setting}")
        found += count(ranks, "get", protocol=protocol, why=f"RMA_USER_MEMORY={setting}")
        expect_some(replay, f"operations because of RMA_USER_MEMORY={setting}", found)


def test_large_copies(options, folder):
    ranks, replay = run(options, options.large_copies, folder, ranks=2)
    for protocol in ("promised", "staged", "shared", "fabric"):
        for call in ("put", "get"):
            found = count(ranks, call, protocol=protocol, why="measured first, at this size")
            expect_some(replay, f"{call} by {protocol}, which had no figure", found)
    found = count(ranks, "put", why="the fastest so far, at this size")
    expect_some(replay, "puts by the fastest way", found)
    for setting in ("staged", "shared"):
        # A target that waits for its processor would be taken for one that sleeps.
        ranks, replay = run(options, options.large_copies, folder, ranks=2, RMA_USER_MEMORY=setting,
                            RMA_SPIN_US="1000000")
        for call in ("put", "get"):
            found = count(ranks, call, protocol=setting, why=f"RMA_USER_MEMORY={setting}")
            expect_some(replay, f"{call} because of RMA_USER_MEMORY={setting}", found)


def test_signals(options, folder):
    ranks, replay = run(options, "06_notified_ring", folder)
    expect_some(replay, "wait_signal", count(ranks, "wait_signal", protocol="memory"))
    check_signal_arrows(replay, folder, count(ranks, "wait_signal"))
    if options.rma_sim is not None:
        ranks, replay = simulate(options, "06_notified_ring", folder, RMA_LOCK="network")
        check_signal_arrows(replay, folder, count(ranks, "wait_signal"))


def check_signal_arrows(replay, folder, waits):
    """Each begins in a put and ends later, in a wait of the rank that it leads to."""
    begins, ends = {}, {}
    for rank in range(RANKS):
        with open(os.path.join(folder, f"t.{rank}.json"), encoding="utf-8") as file:
            events = json.load(file)
        for event in (event for event in events if event.get("cat") == "signal"):
            begin = event["ph"] == "s"
            among = begins if begin else ends
            _, source, target, signal, _ = event["id"].split("-")
            inside = [call["name"] for call in events if call["ph"] == "X" and call["tid"] == event["tid"]
                      and call["ts"] <= event["ts"] <= call["ts"] + call["dur"]]
            good = (event["id"] not in among and (source if begin else target) == str(rank) and signal == "0"
                    and ("put" if begin else "wait_signal") in inside)
            if not good:
                raise Failed(f"{replay}\nrank {rank}: {event} in {inside}")
            among[event["id"]] = event["ts"]
    expect_some(replay, "arrows of signals", len(ends))
    expect(replay, "ends of arrows, one for each wait", len(ends), waits)
    expect(replay, "arrows that begin and do not end, or the other way round", set(begins) ^ set(ends), set())
    for name, begin in begins.items():
        if begin > ends[name]:
            raise Failed(f"{replay}\narrow {name} ends before it begins")


# Break: keep form_ in allreduce (src/coll/memory.cpp) as it is; give reason_of (src/coll/table.cpp) no name; let
# Team::barrier pass over RMA_COLL_BARRIER.
def test_forms_of_collectives(options, folder):
    in_memory = "all members share memory; "
    ranks, replay = run(options, options.forms, folder)
    for name, form, why in (("allreduce", "flat", "up to 2048 B"), ("allreduce", "direct", "more than 2048 B"),
                            ("allreduce", "window", "32768 B and more in segments"),
                            ("broadcast", "release-gather", "one side waits"),
                            ("reduce", "release-gather", "one side waits"),
                            ("allgather", "flat", "blocks of up to 65536 B"),
                            ("alltoall", "flat", f"blocks of up to {65536 // RANKS} B"),
                            ("gather", "release-gather", "blocks of up to 65536 B"),
                            ("scatter", "release-gather", f"blocks of up to {65536 // RANKS} B")):
        expect(replay, f"{name} {form}", count(ranks, name, protocol=form, why=in_memory + why), RANKS)
    expect(replay, "barrier by flags", count(ranks, "barrier", protocol="flags", why="all members share memory"), RANKS)

    names = {"RMA_COLL_ALLREDUCE": "tree", "RMA_COLL_BROADCAST": "tree", "RMA_COLL_BARRIER": "linear"}
    ranks, replay = run(options, options.forms, folder, **names)
    expect(replay, "allreduce tree", count(ranks, "allreduce", protocol="tree", why="tree is set"), 3 * RANKS)
    expect(replay, "broadcast tree", count(ranks, "broadcast", protocol="tree", why="tree is set"), RANKS)
    expect(replay, "barrier linear", count(ranks, "barrier", protocol="linear"), RANKS)
    ranks, replay = run(options, options.forms, folder, ranks=2, **names)  # no groups of two members
    expect(replay, "no tree of two", count(ranks, "broadcast", why="the name set does not fit: tree"), 2)

    if options.rma_sim is None:
        return
    for name, text in (("flat", "flat, for blocking calls in memory"), ("hierarchical", None)):
        ranks, replay = simulate(options, options.forms, folder, RMA_COLL_ALLREDUCE=name)
        reasons = {event["args"]["why"] for events in ranks for event in events if event["name"] == "allreduce"}
        if text is None:
            expect(replay, "reasons of a name that fits", {why.split(":")[0] for why in reasons}, {name})
        elif not all(why.startswith(f"the name set does not fit: {text}; ") and "next" in why for why in reasons):
            raise Failed(f"{replay}\n{reasons}")
    expect_some(replay, "barrier by messages", count(ranks, "barrier", protocol="dissemination"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rmarun", required=True)
    parser.add_argument("--examples", required=True)
    parser.add_argument("--expected", required=True)
    parser.add_argument("--large-copies", required=True)
    parser.add_argument("--forms", required=True)
    parser.add_argument("--rma-sim", help="nothing of several nodes is tested without it")
    options = parser.parse_args()
    tests = [test for name, test in sorted(globals().items()) if name.startswith("test_")]
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="rma-trace-") as folder:
            try:
                test(options, folder)
                print(f"ok {test.__name__}")
            except Failed as why:
                failed += 1
                print(f"FAILED {test.__name__}: {why}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
