"""Whether a seed gives the same run in each Java, in a JVM of its own and in one that has had others."""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING

from clusters.sim.jvm import idle, javas
from tests.trials import trials

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clusters.sim.jvm.javas import Java

STOPS = ("--preempt", "0.1", "--page-faults", "0.3"), ("--stalls", "3", "--page-faults", "0.3")


def compare(words: Sequence[str], count: int) -> int:
    """Prints a table; returns 0 if all runs of each seed are the same, else 1.

    Args:
        words: The run, by its words on the command line. Two thirds of the seeds also have options of threads.
        count: The number of seeds.
    """
    all_javas = javas.installed()
    places = [
        (java.version, fresh)
        for java in sorted(all_javas, key=lambda java: java.version)
        if java.version == javas.COPIED or java.version >= javas.CONTINUATIONS
        for fresh in (False, True)
    ]
    digests: list[list[str]] = []
    for version, fresh in places:
        offered = [java for java in all_javas if java.version in {javas.COPIED, version}]
        _offer(offered)
        digests.append(list(_digests(words, count, fresh=fresh)))
        agree = sum(digest == first for digest, first in zip(digests[-1], digests[0], strict=True))
        where = "a JVM for each run" if fresh else "one JVM"
        print(f"Java {version}, {where:<18} {agree} of {count} runs are those of the first line", flush=True)
    return 0 if all(run == digests[0] for run in digests) else 1


def _digests(words: Sequence[str], count: int, *, fresh: bool) -> Iterator[str]:
    """Yields the digest of each run: of its operations with their virtual times, and of all parts of its verdict."""
    idle.close_all()
    for number, stops in enumerate(((), *STOPS)):
        seeds = range(number * count // 3, (number + 1) * count // 3)
        runs = trials(*words, *stops, seeds=seeds)
        for _ in seeds:
            trial = next(runs)
            reasons = (f"{part.name} {part.verdict}: {part.reason}" for part in trial.outcome.parts)
            told = itertools.chain(map(repr, trial.operations), reasons)
            yield hashlib.sha256("\n".join(told).encode()).hexdigest()
            if fresh:
                idle.close_all()
    idle.close_all()


def _offer(usable: Sequence[Java]) -> None:
    javas.installed = lambda: usable
