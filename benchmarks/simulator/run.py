"""The simulator: its runs per minute on one processor, and where their time goes, with the checks.

`python -m benchmarks simulator` does runs of 20 virtual seconds with about 500 operations each, and then profiles some of them.
The aim is 1,000 runs a minute on two processors: 0.12 s of processor time per run.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.trials import trials  # noqa: E402 - from the repository

AIM_S = 0.12
WORDS = (
    "--cluster", "sim", "--workload", "register", "--time-limit", "20", "--rate", "5", "--nemesis", "partition-leader,kill",
    "--fault-on", "0.5-3", "--fault-off", "0.3-2", "--fault-quiet", "1-3",
)  # fmt: skip
PARTS = {
    "the simulated world": ("clusters/sim/",),
    "the simulated system": ("clusters/systems/", "tests/toy_register.py"),
    "the harness": ("harness/",),
    "the workload": ("workloads/",),
    "the faults": ("nemesis/",),
    "the checks": ("checker/", "_kernel"),
    "asyncio": ("asyncio/", "selectors.py"),
}


def main() -> int:
    """Prints both tables; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", default="sim-raft", help="the simulated system")
    parser.add_argument("--runs", type=int, default=40, help="how many runs are timed")
    parser.add_argument("--profiled", type=int, default=5, help="how many further runs are profiled")
    given = parser.parse_args()
    words = (*WORDS, "--system", given.system)
    seconds: list[float] = []
    verdicts: Counter[str] = Counter()
    operations = 0
    next(iter(trials(*words, seeds=range(1))))  # imports
    runs = trials(*words, seeds=range(1, given.runs + 1))
    for _ in range(given.runs):
        began_s = time.process_time()
        trial = next(runs)
        seconds.append(time.process_time() - began_s)
        verdicts[str(trial.outcome.verdict)] += 1
        operations += len(trial.operations)
    median_s = statistics.median(seconds)
    print(f"{given.runs} runs of {given.system}, {operations / given.runs:.0f} operations each, {dict(verdicts)}")
    print(f"processor time of a run: median {median_s:.3f} s, most {max(seconds):.3f} s; the aim is {AIM_S} s")
    print(f"runs a minute on two processors, by the mean: {120 / statistics.mean(seconds):.0f}\n")
    profile = cProfile.Profile()
    profile.enable()
    for _ in trials(*words, seeds=range(1000, 1000 + given.profiled)):
        pass
    profile.disable()
    _print_parts(profile)
    return 0


def _print_parts(profile: cProfile.Profile) -> None:
    """Prints each folder's part of the time. Built-in functions count for themselves."""
    spent: dict[str, float] = defaultdict(float)
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # it has them
    for (file, _, _), (_, _, own_s, _, _) in stats.items():
        names = (name for name, marks in PARTS.items() if any(mark in file for mark in marks))
        spent[next(names, "built-in functions" if file == "~" else "all else")] += own_s
    for name, own_s in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"{name:<24} {own_s / sum(spent.values()):6.1%}")


if __name__ == "__main__":
    sys.exit(main())
