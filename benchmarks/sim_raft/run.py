"""The simulated Raft over many seeds: false accusations of the correct version, and how soon a hunt finds each planted bug.

`python -m benchmarks sim_raft --runs 1000` runs the correct version. `--bugs` hunts each bug from ten root seeds.
`--bugs --paired` does so guided and blind, with the same root seeds. All runs are those of `labrys hunt --system sim-raft`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from clusters.systems.sim_raft.bugs import TABLE, Bug
from tests.catches.hunts import Hunt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.catches.hunts import Find


def correct(runs: int, seed: int) -> int:
    """Runs the correct version, half of the runs with leases; prints each accusation and returns their number."""
    accused, operations, begun_s = 0, 0, time.process_time()
    verdicts: Counter[str] = Counter()
    for words, share in (((), runs - runs // 2), (("--reads", "lease"), runs // 2)):
        hunt = Hunt(words, seed=seed)
        for _ in range(share):
            draw, trial = hunt.next()
            if trial is None:
                verdicts["refused"] += 1
                continue
            verdicts[str(trial.verdict)] += 1
            operations += len(trial.operations)
            if trial.blamed:
                accused += 1
                reason = next(part.reason for part in trial.parts if part.name in trial.blamed)
                print(f"{draw}: {', '.join(trial.blamed)}: {reason}", flush=True)
    seconds = time.process_time() - begun_s
    print(
        f"{runs} runs of the correct version, {operations} operations, {dict(verdicts)}: {accused} accused; "
        f"{seconds / runs:.3f} s of processor time for a run"
    )
    return accused


def bugs(names: Sequence[str], *, series: int, most: int, paired: bool) -> int:
    """Prints how soon each bug is found. Returns the number of bugs found in less than half of the series."""
    missed = 0
    print("| bug | runs to the first find | found | part | operations in the counterexample |")
    print("|---|---|---|---|---|")
    for bug in TABLE:
        if names and bug not in names:
            continue
        rows = [("guided", True), ("blind", False)] if paired else [("", True)]
        for label, guided in rows:
            finds = [
                find for seed in range(1, series + 1) if (find := first(bug, seed, most, guided=guided)) is not None
            ]
            missed += not paired and 2 * len(finds) < series
            print(_row(f"{bug} {label}".strip(), finds, series, most), flush=True)
    return missed


def first(bug: Bug, seed: int, most: int, *, guided: bool) -> Find | None:
    """Returns the first find of a hunt."""
    return Hunt.of(bug, seed=seed, guided=guided).first(most)


def _row(name: str, finds: Sequence[Find], series: int, most: int) -> str:
    if 2 * len(finds) < series:
        return f"| `{name}` | more than {most} | {len(finds)} of {series} | | |"
    runs = [find.runs for find in finds] + [most] * (series - len(finds))
    part = statistics.mode(find.parts[0] for find in finds)
    sizes = [find.size for find in finds if find.size]
    size = f"{statistics.median(sizes):g}" if sizes else ""
    return f"| `{name}` | {statistics.median(runs):g} | {len(finds)} of {series} | `{part}` | {size} |"


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="runs of the correct version")
    parser.add_argument("--seed", type=int, default=1, help="the root seed of the correct version's hunt")
    parser.add_argument("--bugs", nargs="*", metavar="BUG", help="hunt these bugs, or all, instead")
    parser.add_argument("--series", type=int, default=10, help="hunts of each bug, with the root seeds from 1")
    parser.add_argument("--most", type=int, default=300, help="runs of a hunt, at most")
    parser.add_argument("--paired", action="store_true", help="hunt each bug both guided and blind")
    options = parser.parse_args()
    if options.bugs is not None:
        return min(1, bugs(options.bugs, series=options.series, most=options.most, paired=options.paired))
    return min(1, correct(options.runs, options.seed))


if __name__ == "__main__":
    sys.exit(main())
