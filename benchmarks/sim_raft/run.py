"""The simulated Raft: how soon a hunt finds each planted bug.

`python -m benchmarks sim_raft` hunts each bug, or the named ones, from several root seeds. `--paired` does so guided and blind,
and `--triggers all` with all triggers and without, with the same root seeds. The runs are those of `labrys hunt --system
sim-raft --bug BUG`. The correct version has a hunt of its own: `labrys hunt --system sim-raft --runs 50000 --finds 50000`
prints each false accusation.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from clusters.systems.sim_raft.bugs import TABLE, Bug
from harness.pool import Pool
from tests.catches.hunts import Hunt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.catches.hunts import Find

GUIDED, BLIND = "guided", "blind"


def first(bug: Bug, seed: int, most: int, way: str) -> Find | None:
    """Returns the first find of a hunt with at most `most` runs. A way that is neither guided nor blind is that of triggers."""
    triggers = None if way in {GUIDED, BLIND} else way
    return Hunt.of(bug, seed=seed, guided=way != BLIND, triggers=triggers).first(most)


def hunt_all(names: Sequence[str], ways: Sequence[str], *, series: int, most: int, jobs: int) -> None:
    """Prints a row for each bug and way, as soon as all of its hunts are over; and for two ways their comparison."""
    rows = [(bug, way) for bug in TABLE if not names or bug in names for way in ways]
    taken: dict[str, list[int]] = defaultdict(list)
    print("| bug | hunt | median runs to the first find | found | part | operations in the counterexample |")
    print("|---|---|---|---|---|---|")
    with Pool(jobs) as pool:
        hunts = {row: [pool.submit(first, row[0], seed, most, row[1]) for seed in range(1, series + 1)] for row in rows}
        for (bug, way), futures in hunts.items():
            finds = [future.result() for future in futures]
            print(_row(bug, way, finds, most), flush=True)
            taken[way] += [find.runs if find else most for find in finds]
    if len(ways) > 1:
        print(f"\n{_compared(taken, *ways)}")


def _row(bug: Bug, way: str, finds: Sequence[Find | None], most: int) -> str:
    successes = [find for find in finds if find is not None]
    start = f"| `{bug}` | {way} |"
    if 2 * len(successes) < len(finds):
        return f"{start} more than {most} | {len(successes)} of {len(finds)} | | |"
    runs = statistics.median(find.runs if find else most for find in finds)
    part = statistics.mode(find.parts[0] for find in successes)
    sizes = [find.size for find in successes if find.size]
    size = f"{statistics.median(sizes):g}" if sizes else ""
    return f"{start} {runs:g} | {len(successes)} of {len(finds)} | `{part}` | {size} |"


def _compared(taken: dict[str, list[int]], way: str, other: str) -> str:
    """Compares hunts of the same bug and root seed. A hunt without a find counts with all of its runs."""
    pairs = list(zip(taken[way], taken[other], strict=True))
    fewer, more = sum(runs < others for runs, others in pairs), sum(runs > others for runs, others in pairs)
    ratio = sum(taken[way]) / sum(taken[other])
    return (
        f"{len(pairs)} pairs: {way} needs fewer runs in {fewer}, more in {more}, as many in {len(pairs) - fewer - more}. In "
        f"all, the hunts {way} have {sum(taken[way])} runs, and those {other} {sum(taken[other])}: a ratio of {ratio:.2f}."
    )


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bugs", nargs="*", metavar="BUG", default=[], help="only these bugs")
    parser.add_argument("--series", type=int, default=10, help="hunts of each bug, with the root seeds from 1")
    parser.add_argument("--most", type=int, default=300, help="the maximum number of runs of a hunt")
    pairs = parser.add_mutually_exclusive_group()
    pairs.add_argument("--paired", action="store_true", help="hunt each bug both guided and blind")
    pairs.add_argument(
        "--triggers", metavar="TRIGGER,...", help="hunt each bug, guided, with these triggers and without"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at the same time")
    options = parser.parse_args()
    ways = (GUIDED, BLIND) if options.paired else (options.triggers, GUIDED) if options.triggers else (GUIDED,)
    hunt_all(options.bugs, ways, series=options.series, most=options.most, jobs=options.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
