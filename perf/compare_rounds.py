# SPDX-License-Identifier: Apache-2.0
"""What the comparisons over a network share. Such machines change their speed from second to second, so that ours and
the MPIs have their runs by turns (compare_turns.py), and a ratio is the median of the ratios of two runs that followed
each other. With the tools of rdma-core and UCX, who take no turns, that are two starts. Who begins alternates from
round to round.

Beside each run of ours and of the MPIs stands its pace: ns for a step of a fixed chain of instructions just before and
after it; and the time that a cache line took before and after the point. Runs that were not alone on their core, or for
which the cores were far from each other, do not count, nor do those that followed them."""
import importlib.machinery
import importlib.util
import os
import re
import statistics
import subprocess
import tempfile
import time
import typing

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS = "rma"
DISTURBED = 1.12  # times the usual pace
FAR = 2.2  # times what a cache line takes while the cores are near
PAIRS_MIN = 3  # if fewer pairs remain, all count
PART_MIN = 0.1  # or a smaller part of them
SECONDS_PER_TOOL = 60
STARTS_BESIDE_TOOL = 2  # in a round


class Tool(typing.NamedTuple):
    """Another program that measures by itself."""
    name: str
    measure: typing.Callable[[], float | None]  # the value, in our unit
    options: tuple[str, ...]  # options of our program, to do as the tool does


def load_compare():
    loader = importlib.machinery.SourceFileLoader("compare", os.path.join(ROOT, "perf", "compare"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
    loader.exec_module(module)
    return module


compare = load_compare()


def bars_of(programs, only):
    """What is measured; the bars themselves are those of shared memory and do not count here. Nor is there promoted
    memory, and a target that computes is another matter."""
    return [bar for bar in compare.all_bars() if bar.program in programs and not bar.metric.endswith("_striped") and
            not bar.metric.startswith(("promoted_", "computing_")) and re.search(only, f"{bar.metric}/{bar.bytes}")]


def missing_programs(build, programs):
    needed = [os.path.join(build, "tools", "rmarun")] + [os.path.join(build, "perf", program) for program in programs]
    return [path for path in needed if not os.path.exists(path)]


def between_two(server, client, tries=50):
    """What `client` prints when it reaches `server`, which is started and ended here; None if it never does."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        serving = subprocess.Popen(server, stdout=nowhere, stderr=nowhere)
    words = ""
    try:
        for _ in range(tries):  # until the server listens
            done = subprocess.run(client, capture_output=True, text=True, timeout=SECONDS_PER_TOOL)
            words = done.stdout + done.stderr
            if done.returncode == 0:
                return words
            if serving.poll() is not None:
                break
            time.sleep(0.1)
    except subprocess.TimeoutExpired:
        words = f"no end after {SECONDS_PER_TOOL} s"
    finally:
        serving.kill()
        serving.wait()
    last = " / ".join(words.strip().splitlines()[-3:])
    compare.say(f"  {' '.join(client)} failed: {last}")
    return None


def our_command(chosen, program, options):
    return [os.path.join(chosen.build, "tools", "rmarun"), "-n", "2", *options,
            os.path.join(chosen.build, "perf", program)]


def started_alone(who, command, program, metrics, chosen):
    """The points of one program, which has all its runs one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "points.json")
        begin = time.monotonic()
        try:
            done = subprocess.run(compare.with_options(command, who, out, metrics, chosen), capture_output=True,
                                  text=True, timeout=compare.SECONDS_PER_PROGRAM, env=compare.environment(),
                                  stdin=subprocess.DEVNULL)
            status, words = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            status, words = -1, f"no end after {compare.SECONDS_PER_PROGRAM} s"
        except OSError as error:
            status, words = -1, str(error)
        compare.say(f"  {who}: {program} ({time.monotonic() - begin:.1f} s)")
        return compare.points_in(out, who, program, status, words)


def runs_of(point):
    """[(value, pace, line)]; a line of 0: nobody could look."""
    line = max(point["line_ns"])
    return [(value, pace, line) for value, pace in zip(point["values"], point["paces_ns"])]


def beside(tool, command, program, key, chosen, ours_last):
    """What a tool and ours say if they are started one after the other some times, each the one value of such a start:
    {who: [(value, pace, line)]}."""
    found = {(OURS, tool.name): [], tool.name: []}
    metric, count = key
    for _ in range(STARTS_BESIDE_TOOL):
        def ours():
            options = ["--bytes", str(count), *tool.options]
            points = started_alone(OURS, [*command, *options], program, {metric}, chosen)
            return [tuple(map(statistics.median, zip(*runs_of(point)))) for point in points]

        def theirs():
            return [(value, None, 0)] if (value := tool.measure()) is not None else []
        sides = [((OURS, tool.name), ours), (tool.name, theirs)]
        values = {who: measure() for who, measure in (sides[::-1] if ours_last else sides)}
        if not all(values.values()):
            return {}
        for who, value in values.items():
            found[who] += value
    return found


def one_round(chosen, programs, bars, peers, tools, options=None, ours_last=False):
    """{(metric, bytes): {who: [(value, pace, line)]}} and the units. peers: {name: command before the program, folder
    of programs}. tools: {(metric, bytes): Tool}; ours then stands under (OURS, name of the tool), too. options:
    {program: of the launcher, for ours}."""
    found, units = {}, {}
    for program in programs:
        mine = [bar for bar in bars if bar.program == program and bar.against is None]
        if not mine:
            continue
        ours = our_command(chosen, program, (options or {}).get(program, []))
        wanted = {bar.metric for bar in mine}
        sides = [(OURS, ours, wanted)]
        for name, (command, folder) in peers.items():
            there = os.path.join(folder, program)
            if os.path.exists(there):
                sides.append((name, [*command, "-n", "2", there], wanted))
        for point in compare.in_turn(chosen, program, sides[::-1] if ours_last else sides):
            key = (point["metric"], point["bytes"])
            found.setdefault(key, {})[point["who"]] = runs_of(point)
            units[key] = point["unit"]
        for key in sorted({(bar.metric, bar.bytes) for bar in mine} & set(tools) & set(found)):
            found[key].update(beside(tools[key], ours, program, key, chosen, ours_last))
    return found, units


def all_rounds(chosen, one, seconds=float("inf"), clock=time.monotonic):
    """What the rounds found, and the units: `one(ours_last)` measures one of them. Ends early if another one, as long
    as the longest until then, would not end within the seconds: what was measured is worth more than what would be."""
    rounds, units, longest, start = [], {}, 0.0, clock()
    for number in range(1, chosen.rounds + 1):
        begin = clock()
        if rounds and begin - start + longest > seconds:
            compare.say(f"time for {len(rounds)} of {chosen.rounds} rounds only")
            break
        compare.say(f"round {number} of {chosen.rounds}")
        values, some = one(number % 2 == 0)
        rounds.append(values)
        units.update(some)
        longest = max(longest, clock() - begin)
    return rounds, units


def least_usual(values):
    """The twentieth part was as small; inf if there are none."""
    values = sorted(values)
    return values[len(values) // 20] if values else float("inf")


def limits_of(rounds):
    """The pace and the line up to which runs count: of a core without neighbors, and of cores that are near."""
    runs = [run for values in rounds for sides in values.values() for some in sides.values() for run in some]
    return (DISTURBED * least_usual(pace for _, pace, _ in runs if pace),
            FAR * least_usual(line for _, _, line in runs if line))


def pairs_in(ours, theirs, limits):
    """[(our value, their value)] of one round: of runs that followed each other and are both within these limits."""
    def counts(run):
        _, pace, line = run
        return (pace or 0) <= limits[0] and line <= limits[1]

    return [(mine[0], other[0]) for mine, other in zip(ours, theirs) if counts(mine) and counts(other)]


def pairs_of(rounds, key, ours, who, limits=(float("inf"), float("inf"))):
    return [pair for values in rounds
            for pair in pairs_in(*(values.get(key, {}).get(name, []) for name in (ours, who)), limits)]


def rows_of(rounds, units, bars):
    """bars: {who: function of (metric, bytes) that gives the bar, or None if it is only shown}."""
    rows = []
    limits = limits_of(rounds)
    for key in sorted({key for values in rounds for key in values}):
        for who, bar_of in bars.items():
            ours = (OURS, who) if any((OURS, who) in values.get(key, {}) for values in rounds) else OURS
            everything = pairs_of(rounds, key, ours, who)
            pairs, state = pairs_of(rounds, key, ours, who, limits), "alone"
            if len(pairs) < max(min(PAIRS_MIN, len(everything)), PART_MIN * len(everything)):
                pairs, state = everything, "disturbed"
            if not pairs:
                continue
            is_time = units[key] == "ns"
            bar = bar_of(key)
            ratio = statistics.median(ours / theirs for ours, theirs in pairs)
            met = bar is None or (ratio <= bar if is_time else ratio >= bar)
            rows.append({"metric": key[0], "bytes": key[1], "unit": units[key], "who": who,
                         "ours": statistics.median(ours for ours, _ in pairs),
                         "theirs": statistics.median(theirs for _, theirs in pairs), "ratio": ratio, "bar": bar,
                         "compared": len(pairs), "state": state, "pairs": pairs,
                         "verdict": "-" if bar is None else "ok" if met else "NOT"})
    return rows


def as_text(rows):
    head = ("metric", "bytes", "unit", "ours", "theirs", "who", "ratio", "bar", "verdict", "pairs", "state")
    cells = [list(head)]
    for row in rows:
        sign = "<= " if row["unit"] == "ns" else ">= "
        cells.append([row["metric"], str(row["bytes"]), row["unit"], f"{row['ours']:.4g}", f"{row['theirs']:.4g}",
                      row["who"], f"{row['ratio']:.3f}", "-" if row["bar"] is None else f"{sign}{row['bar']:.2f}",
                      row["verdict"], str(row["compared"]), row["state"]])
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)


def report(rows):
    """Prints the table; the exit status."""
    print(as_text(rows))
    missed = [row for row in rows if row["verdict"] == "NOT"]
    print(f"{len(missed)} of {sum(row['bar'] is not None for row in rows)} bars missed")
    return 2 if not rows else 1 if missed else 0


def add_arguments(parser, rounds):
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder (build/release)")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"how often all programs are started ({rounds})")
    parser.add_argument("--runs", type=int, default=9, help="runs of each point in a round (9)")
    parser.add_argument("--run-ms", type=float, default=20, help="length of a run (20)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only lines whose METRIC/BYTES contains this")
    parser.add_argument("--json", metavar="FILE", help="write the table there")
