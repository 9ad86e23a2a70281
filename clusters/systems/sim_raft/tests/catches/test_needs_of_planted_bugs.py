"""A planted bug cannot show itself in a run that lacks what the bug needs.

Such a run has the same history as the run of the correct version with the same seed, operation by operation. If it also passes
without the need, the declaration in `clusters/systems/sim_raft/bugs.py` is not strict, and Labrys refuses hunts that could find
the bug.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import pytest

from clusters.systems.sim_raft.bugs import TABLE, Bug
from nemesis.kinds import all_kinds, find_kind
from tests.trials import trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.op import Operation
    from harness.verdict import Verdict

RUN = (
    "--cluster", "sim", "--system", "sim-raft", "--time-limit", "8", "--rate", "8", "--fault-on", "0.1-1.5",
    "--fault-off", "0.1-0.5", "--fault-quiet", "1-2", "--snapshot-entries", "5", "--no-pre-vote",
    "--no-final-reads",  # they transfer the leadership, but only after all faults and all writes
)  # fmt: skip
SEEDS = (1, 3)  # with seed 2, a run with one node may have no read after its only fault, and proves nothing
FAULTS = ("clock-strobe", "file-bitflip", "file-truncate", "kill", "leadership-transfer", "packet-delay", "packet-loss",
          "partition-leader", "partition-random-halves", "pause", "power-loss")  # fmt: skip
MANY_NODES = 5
ON_FEW_NODES = {
    1: ("kill",),
    2: ("clock-strobe", "kill", "leadership-transfer", "partition-leader"),
    3: ("clock-strobe", "kill", "leadership-transfer", "packet-delay", "partition-leader"),
}
# With one or two nodes or without reads, these bugs change the times of elections and answers, but no answer is wrong.
OTHER_TIMES = (
    Bug.OLD_TERM_COMMITTED_BY_COUNT,
    Bug.READ_WITHOUT_QUORUM, Bug.LEASE_TOO_LONG, Bug.LEASE_ON_WALL_CLOCK, Bug.LEASE_KEPT_IN_TRANSFER,
    Bug.RESTARTED_VOTER_BREAKS_LEASE,
)  # fmt: skip


class Lacking(NamedTuple):
    """A run that lacks one need of a bug: the words for it, and its kinds of faults."""

    bug: Bug
    words: tuple[str, ...]
    kinds: tuple[str, ...] = FAULTS


def lacking() -> Iterator[Lacking]:
    """Yields a run for each need of each bug."""
    for bug, planted in TABLE.items():
        needs = planted.needs
        given = [word for name, fitting in needs.options.items() for word in (f"--{name}", str(fitting[0]))]
        if "reads" in needs.options:
            yield from (
                Lacking(bug, ("--reads", reads))
                for reads in ("read-index", "lease", "log")
                if reads not in needs.options["reads"]
            )
        if "nodes" in needs.options:
            yield from (Lacking(bug, ("--nodes", str(odd))) for odd in (1, 3, 5))
        for name, least in needs.at_least.items():
            yield Lacking(bug, (*given, f"--{name.replace('_', '-')}", str(least - 1)))
        if needs.workloads:
            assert set(needs.workloads) == {"register", "set", "log", "counter"}
            yield Lacking(bug, (*given, "--workload", "lock"))
        if needs.faults:
            classes = {find_kind(kind).fault for kind in needs.faults}
            others = tuple(kind for kind in FAULTS if find_kind(kind).fault not in classes)
            yield Lacking(bug, tuple(given), others)


def able(run: Lacking) -> tuple[str, ...]:
    """Returns those of its kinds that fit on its number of nodes in the time."""
    nodes = int(run.words[run.words.index("--nodes") + 1]) if "--nodes" in run.words else MANY_NODES
    fitting = FAULTS if nodes == MANY_NODES else ON_FEW_NODES[nodes]
    return tuple(kind for kind in run.kinds if kind in fitting)


@functools.cache
def ran(bug: Bug, words: Sequence[str], kinds: Sequence[str], seed: int) -> tuple[Sequence[Operation], Verdict | None]:
    """Returns the operations of a run, and its verdict."""
    result = trial(*RUN, "--nemesis", ",".join(kinds), *words, "--bug", str(bug), seed=seed)
    return result.operations, result.outcome.verdict


@pytest.mark.parametrize(
    "run", [*lacking()], ids=lambda run: f"{run.bug} {' '.join(run.words) or 'without its faults'}"
)
def test_without_its_needs_a_bug_has_no_effect(run: Lacking) -> None:
    """The run has the operations of the correct version, or at least its verdict."""
    kinds = able(run)
    for seed in SEEDS:
        operations, verdict = ran(run.bug, run.words, kinds, seed)
        correct, expected = ran(Bug.NONE, run.words, kinds, seed)
        assert operations
        assert verdict == expected
        if operations != correct:
            assert run.bug in OTHER_TIMES
            assert {"--nodes", "lock"} & {*run.words}


def test_each_need_can_be_met() -> None:
    """Its kinds of faults and its options exist, and the default workload of a test fits."""
    for bug, planted in TABLE.items():
        needs = planted.needs
        assert all(kind in all_kinds() for kind in needs.faults), bug
        assert not needs.workloads or "register" in needs.workloads, bug
        assert needs != type(needs)(), bug
