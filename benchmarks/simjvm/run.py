"""Java programs in the simulator: runs of the released DLedger, in one JVM for all runs, and in a new JVM for each run.

`python -m benchmarks simjvm` does runs of 20 virtual seconds with faults on three nodes, checks included. The processor time is
that of this process and of the JVMs, their starts included. With `--threads`, Java 17 and its threads run them, also where a
Java with continuations is installed. `--compare 200` compares the runs of 200 seeds in all kinds of JVMs.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.simjvm.same import compare  # noqa: E402 - from the repository
from clusters.sim.jvm import idle, javas  # noqa: E402
from tests.trials import trials  # noqa: E402

WORDS = (
    "--cluster", "sim", "--system", "dledger", "--nodes", "3", "--time-limit", "20", "--rate", "8", "--nemesis",
    "leader-kill,partition-leader", "--fault-on", "0.5-2", "--fault-off", "0.5-2", "--fault-quiet", "1-3",
)  # fmt: skip
MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Some runs, one after the other.

    Attributes:
        walls_s: The time of each run.
        processor_s: The processor time of all of them.
        operations: The number of their operations.
        verdicts: How they ended.
    """

    walls_s: list[float]
    processor_s: float
    operations: int
    verdicts: Counter[str]


def main() -> int:
    """Prints the table; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many runs share a JVM")
    parser.add_argument("--fresh", type=int, default=5, help="how many runs have a JVM of their own")
    parser.add_argument("--threads", action="store_true", help="run them with Java 17")
    parser.add_argument(
        "--compare", type=int, metavar="N", help="compare the runs of N seeds in all these JVMs instead"
    )
    given = parser.parse_args()
    if given.compare is not None:
        return compare(WORDS, given.compare)
    if given.threads:
        old = [java for java in javas.installed() if java.version == javas.COPIED]
        javas.installed = lambda: old
    print(f"Java {javas.chosen(javas.installed())[0].version}")
    heads = (
        ("runs", 5),
        ("first", 8),
        ("later", 8),
        ("processor", 10),
        ("a minute", 9),
        ("and core", 9),
        ("operations", 11),
    )
    print(" " * 18, *(f"{text:>{width}}" for text, width in heads))
    for name, count, fresh in (("one JVM", given.runs, False), ("a JVM for each run", given.fresh, True)):
        series = _series(count, fresh=fresh)
        _print(name, series)
    return 0


def _series(count: int, *, fresh: bool) -> Series:
    walls_s, verdicts, operations = [], Counter[str](), 0
    began_s = _processor_s()
    runs = trials(*WORDS, seeds=range(1, count + 1))
    for _ in range(count):
        if fresh:
            idle.close_all()
        start_s = time.monotonic()
        trial = next(runs)
        walls_s.append(time.monotonic() - start_s)
        verdicts[str(trial.outcome.verdict)] += 1
        operations += len(trial.operations)
    idle.close_all()
    return Series(walls_s=walls_s, processor_s=_processor_s() - began_s, operations=operations, verdicts=verdicts)


def _processor_s() -> float:
    """Returns the processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _print(name: str, series: Series) -> None:
    count = len(series.walls_s)
    later_s = statistics.median(series.walls_s[1:] or series.walls_s)
    each_s = series.processor_s / count
    print(
        f"{name:<18} {count:>5} {series.walls_s[0]:>6.2f} s {later_s:>6.2f} s {each_s:>8.2f} s "
        f"{MINUTE_S / later_s:>9.0f} {MINUTE_S / each_s:>9.0f} {series.operations / count:>11.0f}   {dict(series.verdicts)}"
    )


if __name__ == "__main__":
    sys.exit(main())
