"""The comparison finds replicas that differ at one applied index, whatever the other nodes do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import states
from harness.clock import Clock, run_virtual
from harness.node import Node
from harness.replicas import POLL_S, SETTLE_S, Difference, Dumps, Replicas, compare_replicas
from harness.service import ReplicaState
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    Dump = tuple[int | None, dict[str, Any]] | None

NODES = [Node(name=f"n{number}", address=f"192.0.2.{number}") for number in range(1, 6)]
VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([0.0, 1.0, "1", [1], {"a": 1}])
STATES = st.dictionaries(st.sampled_from("kl"), VALUES, max_size=2)
ROUNDS = st.lists(
    st.lists(st.none() | st.tuples(st.integers(7, 9), STATES), min_size=5, max_size=5), min_size=1, max_size=4
)


class Dumped:
    """A service with given dumps in each round; the last round repeats."""

    nodes = NODES

    def __init__(self, rounds: Sequence[Sequence[Dump]]) -> None:
        self.rounds = rounds
        self.asked = dict.fromkeys((node.name for node in NODES), 0)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the node's next dump."""
        number = min(self.asked[node.name], len(self.rounds) - 1)
        self.asked[node.name] += 1
        dump = self.rounds[number][NODES.index(node)]
        return None if dump is None else ReplicaState(node=node.name, applied_index=dump[0], state=dump[1])


def compared(*rounds: Sequence[Dump], without: Collection[str] = ()) -> tuple[Replicas, Dumped]:
    """Compares replicas in virtual time, and waits for no node of `without`."""
    service: Any = Dumped(rounds)

    async def go() -> Replicas:
        return await compare_replicas(service, clock=Clock(asyncio.get_running_loop()), without=without)

    return run_virtual(go()), service


def canonical(state: dict[str, Any]) -> str:
    """Returns a text that is the same only for equal states, with their types."""
    return repr(sorted((key, type(value).__name__, value) for key, value in state.items()))


@given(ROUNDS)
def test_a_differing_pair_at_one_index_is_always_found(rounds: list[list[Dump]]) -> None:
    """The states may be of one or two rounds and of one or two nodes. Equal states give no difference."""
    dumps = Dumps()
    by_index: dict[int | None, set[str]] = {}
    for dumped in rounds:
        for node, dump in zip(NODES, dumped, strict=True):
            if dump is not None:
                dumps.add(ReplicaState(node=node.name, applied_index=dump[0], state=dump[1]))
                by_index.setdefault(dump[0], set()).add(canonical(dump[1]))
    replicas = dumps.compared([node.name for node in NODES], seconds=1.0)
    wrong = {index for index, states in by_index.items() if len(states) > 1}
    assert {difference.applied_index for difference in replicas.differing} == wrong
    assert (states.replicas_equal(replicas).verdict is Verdict.INVALID) == bool(wrong)
    for difference in replicas.differing:
        values = {type(value).__name__ + repr(value) for value in difference.values.values()}
        assert len(values) > 1 or (values and difference.lacking)


@given(ROUNDS)
def test_the_reason_names_every_node_that_was_not_compared(rounds: list[list[Dump]]) -> None:
    """Valid needs all nodes at one index; the reason has each other node."""
    dumps = Dumps()
    seen: dict[int | None, set[str]] = {}
    for dumped in rounds:
        for node, dump in zip(NODES, dumped, strict=True):
            if dump is not None:
                dumps.add(ReplicaState(node=node.name, applied_index=dump[0], state=dump[1]))
                seen.setdefault(dump[0], set()).add(node.name)
    names = [node.name for node in NODES]
    part = states.replicas_equal(dumps.compared(names, seconds=1.0))
    most = max((len(nodes) for nodes in seen.values()), default=0)
    assert dumps.met(names) == (most == len(NODES))
    if most < len(NODES):
        assert part.verdict is not Verdict.VALID
        unnamed = [
            name for name in names if f"{name} (at index" not in part.reason and f"{name} (no" not in part.reason
        ]
        assert len(unnamed) == (most if most > 1 else 0)


def test_a_node_that_lags_does_not_hide_two_that_differ() -> None:
    """n1 and n2 differ at index 9 while n5 stays at 4."""
    nine, other, four = (9, {"k": 1}), (9, {"k": 2}), (4, {"k": 0})
    result, _ = compared([nine, other, nine, nine, four])

    assert result.differing == [Difference(applied_index=9, key="k", values={"n1": 1, "n2": 2, "n3": 1, "n4": 1})]
    assert result.seconds == pytest.approx(SETTLE_S, abs=POLL_S)
    part = states.replicas_equal(result)
    assert part.verdict is Verdict.INVALID
    assert "n5 (at index 4)" in part.reason


def test_a_lagging_node_is_dumped_again() -> None:
    """The comparison ends as soon as it has caught up."""
    behind, there = (4, {"k": 0}), (9, {"k": 1})
    result, system = compared([there, there, there, there, None], [there, there, there, there, behind], [there] * 5)

    assert system.asked["n5"] == 3
    assert result.compared == {9: ["n1", "n2", "n3", "n4", "n5"]}
    assert states.replicas_equal(result).verdict is Verdict.VALID


def test_states_at_one_index_are_compared_across_rounds() -> None:
    """n1 leaves index 7 before n2 reaches it, and their states at 7 differ."""
    one, two, on = (7, {"k": 1}), (7, {"k": 2}), (8, {"k": 3})
    result, _ = compared([one, None, None, None, None], [on, two, None, None, None])

    assert [(difference.applied_index, difference.values) for difference in result.differing] == [
        (7, {"n1": 1, "n2": 2})
    ]


def test_a_state_that_changes_at_one_index_is_a_difference() -> None:
    """A replica may not change without applying an entry."""
    result, _ = compared([(7, {"k": 1}), None, None, None, None], [(7, {}), None, None, None, None])

    assert result.differing == [Difference(applied_index=7, key="k", values={"n1": 1}, lacking=("n1 (state 2)",))]
    assert states.replicas_equal(result).verdict is Verdict.INVALID


def test_a_node_that_stays_out_need_not_become_equal() -> None:
    """Without a common log, nothing says that its state has to be that of the others."""
    old: Dump = (None, {"k": 1})
    new: Dump = (None, {"k": 2})
    replicas, service = compared([new, new, old, new, new], without=["n3"])
    assert set(service.asked.values()) == {1}
    assert states.replicas_equal(replicas).reason == (
        "4 replicas have the same 1 key at rest. Not compared with them, because it stayed out after healing: n3 (alone)."
    )

    replicas, _ = compared([(7, {"k": 2})] * 4 + [(7, {"k": 1})], without=["n5"])
    assert states.replicas_equal(replicas).verdict is Verdict.INVALID, "at one applied index, it has to be equal"


def test_replicas_without_a_common_log_must_become_equal() -> None:
    """A difference counts only if it stays for the whole time; one that vanishes is replication on its way."""
    old: Dump = (None, {"k": 1})
    new: Dump = (None, {"k": 2})
    replicas, service = compared([old, new, new, new, new], [new] * 5)
    assert set(service.asked.values()) == {2}, "they were equal in the second round"
    assert states.replicas_equal(replicas).reason == "5 replicas have the same 1 key at rest."

    replicas, _ = compared([new, old, new, new, None])
    part = states.replicas_equal(replicas)
    assert part.verdict is Verdict.INVALID
    assert part.reason.startswith(
        "Replicas differ after 20 s at rest in 1 key; k: n1 has 2, n2 has 1, n3 has 2, n4 has 2. Not compared"
    )

    replicas, _ = compared([new, None, new, new, new])
    part = states.replicas_equal(replicas)
    assert (part.verdict, part.reason) == (
        Verdict.UNKNOWN,
        "4 replicas have the same 1 key at rest. Not compared with them: n2 (no answer).",
    )

    replicas, _ = compared([new, None, None, None, None])
    part = states.replicas_equal(replicas)
    assert part.reason.startswith("No two replicas answered in 20 s. Not compared: n1 (alone), n2 (no answer), n3 (no")
