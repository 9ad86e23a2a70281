"""Systems as they are released in virtual time, beside the same run on nodes of this machine.

`python -m benchmarks linux [--seconds 20] [--runs 3] [--simulated] [--all-stop]`: for each system, virtual seconds for a second
on one core, from the start of the nodes to the end of the final reads, and during the workload alone. A run on nodes takes one
second for a second, so its column is the time of the same phases. `--simulated` leaves the nodes out; they need root. On a
machine with other work, the processor time of the whole run, that of Labrys included, says more than the speed. `--all-stop`
lets programs answer no call themselves.

`--pairs N [--trace-all] [--systems NAME,NAME] [--digests FILE]` measures nothing: it carries out N pairs of runs of each
system, and says how many did the same; see `pairs.py`. The file `tests/by-seed.toml` in the folder of a system has its options.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.linux.pairs import compare_pairs
from harness.errors import InputError

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("clusters/systems/*/tests/by-seed.toml"))
SYSTEMS = {path.parents[1].name: tuple(tomllib.loads(path.read_text())["options"]) for path in FILES}
PHASES = ("start", "workload", "recover", "final reads")
NS = 1e9


def processor_s() -> float:
    """Returns the processor time of all processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def carried_out(system: str, seed: int, words: tuple[str, ...]) -> tuple[dict[str, Any], float]:
    """Carries out a run. Returns its `results.json`, and its processor time in seconds."""
    before_s = processor_s()
    with tempfile.TemporaryDirectory(prefix="labrys-") as store:
        subprocess.run(
            [
                sys.executable, "-m", "cli", "test", "--system", system, "--nodes", "3", "--rate", "10", "--seed", str(seed),
                *words, "--store", store,
            ],
            check=True,
            capture_output=True,
        )  # fmt: skip
        (path,) = Path(store).glob("*/2*/results.json")
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document, processor_s() - before_s


def real_s(results: dict[str, Any], *names: str) -> float:
    """Returns the real time of some phases; without names, of those in which the nodes run."""
    phases = [phase for phase in results["phases"] if phase["name"] in (names or PHASES) and phase["node"] is None]
    return float(sum(phase["end_s"] - phase["start_s"] for phase in phases))


def main() -> int:
    """Prints a row for each system. Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20, help="virtual seconds of the workload")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--simulated", action="store_true", help="leave out the runs on nodes")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="names, separated by commas")
    parser.add_argument("--all-stop", action="store_true", help="programs in virtual time answer no call themselves")
    parser.add_argument("--pairs", type=int, help="compare so many pairs of runs of each system, and measure nothing")
    parser.add_argument("--trace-all", action="store_true", help="with --pairs: every system call is in the digest")
    parser.add_argument("--digests", type=Path, help="with --pairs: the file of what programs did in earlier nights")
    options = parser.parse_args()
    names = options.systems.split(",")
    if unknown := sorted(set(names) - set(SYSTEMS)):
        parser.error(f"--systems: expected some of {', '.join(SYSTEMS)}, found {unknown[0]!r}")
    systems = {name: SYSTEMS[name] for name in names}
    if options.pairs is not None:
        try:
            return compare_pairs(
                systems,
                pairs=options.pairs,
                seconds=options.seconds,
                trace_all=options.trace_all,
                digests=options.digests,
            )
        except InputError as error:
            print(error, file=sys.stderr)
            return 1
    limit = ("--time-limit", str(options.seconds))
    more = ("--all-stop",) if options.all_stop else ()
    print(
        f"| {'system':<10} | virtual s a second | in the workload | processor s | runs "
        "| calls | stops | run on nodes | ratio of the times |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for system, words in systems.items():
        both = [
            carried_out(system, seed, ("--cluster", "sim", *words, *limit, *more))
            for seed in range(1, options.runs + 1)
        ]
        runs = [run for run, _ in both]
        used_s = statistics.median(time_s for _, time_s in both)
        speeds = [run["execution"]["figures"]["time"] / NS / real_s(run) for run in runs]
        in_workload = statistics.median(options.seconds / real_s(run, "workload") for run in runs)
        calls, stops = (
            statistics.median(run["execution"]["figures"][name] for run in runs) for name in ("calls", "stops")
        )
        peer, ratio = "-", "-"
        if not options.simulated:
            on_nodes_s = real_s(carried_out(system, 1, limit)[0])
            peer, ratio = f"{on_nodes_s:.1f} s", f"{on_nodes_s / real_s(runs[0]):.1f}"
        speed = f"{statistics.median(speeds):.1f} ({min(speeds):.1f} to {max(speeds):.1f})"
        print(
            f"| {system:<10} | {speed} | {in_workload:.1f} | {used_s:.1f} | {len(runs)} "
            f"| {calls:,.0f} | {stops:,.0f} | {peer} | {ratio} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
