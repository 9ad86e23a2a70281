"""The simulated Raft over many seeds: is the correct version ever accused, and how soon is each planted bug found?

`python -m benchmarks sim_raft --runs 1000` runs the correct version, and `--bugs` looks for each bug with ten series of seeds.
The runs are those of `tests/catches/sim_raft.py`; the n-th run of a series has the n-th mix of faults.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from clusters.systems.sim_raft.bugs import TABLE, Bug
from tests.catches.sim_raft import nodes_of, once, options_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.catches.sim_raft import Outcome

SERIES = 10
APART = 100_000  # between the first seeds of two series


def correct(runs: int, first: int) -> int:
    """Runs the correct version, and prints each accusation; returns how many there were."""
    accused, operations, begun_s = 0, 0, time.process_time()
    for seed in range(first, first + runs):
        found = once(seed)
        operations += len(found.operations)
        if found.blamed:
            accused += 1
            print(f"seed {seed}: {', '.join(found.blamed)}: {found.parts[found.blamed[0]].reason}", flush=True)
    seconds = time.process_time() - begun_s
    print(
        f"{runs} runs of the correct version, {operations} operations: {accused} accused; "
        f"{runs / seconds * 60:.0f} runs a minute of processor time"
    )
    return accused


def bugs(names: Sequence[str], most: int) -> int:
    """Prints how soon each bug is found; returns how many were not."""
    missed = 0
    print(
        "| bug | runs to the first find, median of ten | part | operations in the counterexample |\n|---|---|---|---|"
    )
    for bug in TABLE:
        if names and bug not in names:
            continue
        finds = [found for number in range(SERIES) if (found := _first(bug, number * APART, most)) is not None]
        if len(finds) <= SERIES // 2:
            missed += 1
            print(f"| `{bug}` | found in {len(finds)} of {SERIES} series of {most} runs | | |", flush=True)
            continue
        runs = statistics.median([run for run, _ in finds] + [most] * (SERIES - len(finds)))
        part = statistics.mode(outcome.blamed[0] for _, outcome in finds)
        sizes = [size for _, outcome in finds if (size := _size(outcome))]
        print(f"| `{bug}` | {runs:g} | `{part}` | {statistics.median(sizes) if sizes else ''} |", flush=True)
    return missed


def _first(bug: Bug, first: int, most: int) -> tuple[int, Outcome] | None:
    for run in range(1, most + 1):
        found = once(first + run, options_of(bug), nodes=nodes_of(bug))
        if found.blamed:
            return run, found
    return None


def _size(outcome: Outcome) -> int | None:
    examples = outcome.parts[outcome.blamed[0]].counterexamples
    return len(examples[0].operations) if examples else None


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="runs of the correct version")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--bugs", nargs="*", metavar="BUG", help="look for these bugs, or for all, instead")
    parser.add_argument("--most", type=int, default=300, help="runs in a series of a bug")
    options = parser.parse_args()
    if options.bugs is not None:
        return min(1, bugs(options.bugs, options.most))
    return min(1, correct(options.runs, options.seed))


if __name__ == "__main__":
    sys.exit(main())
