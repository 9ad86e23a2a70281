"""Java programs in the simulator: runs of the released DLedger, in one JVM for all runs, and in a new JVM for each run.

`python -m benchmarks simjvm` does runs of 20 virtual seconds with faults on three nodes, checks included. All clients of the
second row follow the leader. The processor time is that of this process and of the JVMs, their starts included. The last
quarter of many runs has no start in it. With `--threads`, Java 17 and its threads run them, also where a Java with
continuations is installed. With `--free`, the kernel chooses the cores, and a run has none of its own. `--compare 200`
compares the runs of 200 seeds in all kinds of JVMs.

The speed of a machine changes from hour to hour. So a run of the peer follows each run: `sim-raft`, a Raft in Python, as in the
benchmark `simulator`. The last column is the processor time of the last quarter, as a multiple of its peer's. The aims are 300
runs a minute and core, and 100 with Java 17, on a machine that does 660 runs of the peer. They are multiples of 2.2 and 6.6.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.simjvm.same import compare  # noqa: E402 - from the repository
from benchmarks.simulator.run import WORDS as OF_SIMULATOR  # noqa: E402
from clusters.sim.jvm import idle, javas  # noqa: E402
from clusters.sim.world import SimWorld  # noqa: E402
from tests.trials import trials  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = (
    "--cluster", "sim", "--system", "dledger", "--nodes", "3", "--time-limit", "20", "--rate", "8", "--nemesis",
    "leader-kill,partition-leader", "--fault-on", "0.5-2", "--fault-off", "0.5-2", "--fault-quiet", "1-3",
)  # fmt: skip
TO_THE_LEADER = ("--routing", "leader")
PEER = (*OF_SIMULATOR, "--system", "sim-raft")
MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Some runs, one after the other.

    Attributes:
        walls_s: The time of each run.
        processor_s: The processor time of each run. The start of its JVM belongs to it.
        peers_s: The processor time of the run of the peer after each run.
        operations: The number of their operations.
        verdicts: How they ended.
    """

    walls_s: list[float]
    processor_s: list[float]
    peers_s: list[float]
    operations: int
    verdicts: Counter[str]


def main() -> int:
    """Prints the table; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many runs share a JVM")
    parser.add_argument("--fresh", type=int, default=5, help="how many runs have a JVM of their own")
    parser.add_argument("--threads", action="store_true", help="run them with Java 17")
    parser.add_argument("--free", action="store_true", help="let the kernel choose the cores")
    parser.add_argument(
        "--compare", type=int, metavar="N", help="compare the runs of N seeds in all these JVMs instead"
    )
    given = parser.parse_args()
    if given.compare is not None:
        return compare(WORDS, given.compare)
    if given.threads:
        old = [java for java in javas.installed() if java.version == javas.COPIED]
        javas.installed = lambda: old
    if given.free:
        SimWorld.share_core = lambda _: None  # type: ignore[assignment,method-assign]
    print(f"Java {javas.chosen(javas.installed())[0].version}")
    next(trials(*PEER, seeds=range(1, 2)))  # imports
    heads = (
        ("runs", 5),
        ("first", 8),
        ("later", 8),
        ("processor", 10),
        ("a minute", 9),
        ("last", 8),
        ("a minute", 9),
        ("operations", 11),
        ("x peer", 8),
    )
    print(" " * 22, *(f"{text:>{width}}" for text, width in heads))
    _print("one JVM", _series(WORDS, given.runs, fresh=False))
    _print("one JVM, to the leader", _series((*WORDS, *TO_THE_LEADER), given.runs, fresh=False))
    _print("a JVM for each run", _series(WORDS, given.fresh, fresh=True))
    return 0


def _series(words: Sequence[str], count: int, *, fresh: bool) -> Series:
    walls_s, processor_s, peers_s, verdicts, operations = [], [], [], Counter[str](), 0
    idle.expect(1 if fresh else count)
    runs, peers = (trials(*side, seeds=range(1, count + 1)) for side in (words, PEER))
    for _ in range(count):
        if fresh:
            idle.close_all()
        start_s, used_s = time.monotonic(), _processor_s()
        trial = next(runs)
        walls_s.append(time.monotonic() - start_s)
        verdicts[str(trial.outcome.verdict)] += 1
        operations += len(trial.operations)
        began_s = time.process_time()
        next(peers)
        peers_s.append(time.process_time() - began_s)
        processor_s.append(_processor_s() - used_s - peers_s[-1])  # the JVM may compile during the peer's run
    idle.close_all()
    return Series(walls_s=walls_s, processor_s=processor_s, peers_s=peers_s, operations=operations, verdicts=verdicts)


def _processor_s() -> float:
    """Returns the processor time of this process and of its children."""
    ended = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    running = (
        Path("/proc", child, "stat").read_text(encoding="utf-8").rpartition(")")[2].split() for child in children
    )
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in running)  # proc(5): utime and stime
    return sum(usage.ru_utime + usage.ru_stime for usage in ended) + ticks / os.sysconf("SC_CLK_TCK")


def _print(name: str, series: Series) -> None:
    count = len(series.walls_s)
    later_s = statistics.median(series.walls_s[1:] or series.walls_s)
    each_s = statistics.mean(series.processor_s)
    last_s, peer_s = (
        statistics.mean(series_s[-max(1, count // 4) :]) for series_s in (series.processor_s, series.peers_s)
    )
    print(
        f"{name:<22} {count:>5} {series.walls_s[0]:>6.2f} s {later_s:>6.2f} s {each_s:>8.2f} s {MINUTE_S / each_s:>9.0f} "
        f"{last_s:>6.2f} s {MINUTE_S / last_s:>9.0f} {series.operations / count:>11.0f} "
        f"{last_s / peer_s:>8.2f}   {dict(series.verdicts)}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
