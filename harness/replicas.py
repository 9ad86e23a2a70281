"""Compares the replicas, with clients at rest.

Replicas that have applied the same entries of a log must have the same state. So Labrys compares each group of nodes at the
same applied index, and a node that lags does not hide two that differ. If not all nodes are at the same index, Labrys dumps
them again for a bounded time, because lagging nodes may catch up. Replicas without a common log must become equal in this time:
the last state of each node counts, but for nodes that stayed out after healing.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.slowness import slowed
from harness.tasks import answers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from harness.clock import Clock
    from harness.op import Value
    from harness.service import ReplicaState, Service

SETTLE_S = 20.0
DUMP_TIMEOUT_S = 5.0
POLL_S = 0.1
MAX_DIFFERING = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A key with different values in replicas at the same applied index, or at rest.

    Attributes:
        applied_index: The index; None if the replicas have none.
        key: The key.
        values: The value of each node that has the key. If the state of a node changes at the same index, each further state
            has an entry of its own, as in `n1 (state 2)`.
        lacking: The nodes that do not have the key.
    """

    applied_index: int | None
    key: str
    values: Mapping[str, Value]
    lacking: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The result of a comparison of the replicas.

    Attributes:
        applied: The last applied index of each node; None if it never answered, or has none.
        compared: For each index with two nodes or more, the nodes at this index; with the index None, those that have none.
        unplaced: The nodes that answered without an index.
        keys: The number of keys at the index with the most nodes.
        differing: The first keys that differ, at most `MAX_DIFFERING`.
        differing_keys: The number of keys that differ, counted for each index.
        seconds: The duration of the comparison.
        out: The nodes that had stayed out, so that nobody waited for them.
        from_ns: Its start, on the run's clock; None if it is not known.
    """

    applied: Mapping[str, int | None]
    compared: Mapping[int | None, Sequence[str]]
    unplaced: Sequence[str] = ()
    keys: int = 0
    differing: Sequence[Difference] = ()
    differing_keys: int = 0
    seconds: float = 0.0
    out: Sequence[str] = ()
    from_ns: int | None = None

    @property
    def largest(self) -> int | None:
        """Returns the index with the most nodes, the largest of equals; None if no index has two nodes."""
        indexes = [index for index in self.compared if index is not None]
        return max(indexes, key=lambda index: (len(self.compared[index]), index), default=None)

    @property
    def together(self) -> Sequence[str]:
        """Returns the largest group of nodes that were compared with each other; empty if there is none."""
        return self.compared.get(self.largest, ())


async def compare_replicas(service: Service, *, clock: Clock, without: Collection[str] = ()) -> Replicas:
    """Dumps all replicas until all were at one applied index or the time is over, and compares them.

    Args:
        service: The service.
        clock: The run's clock.
        without: The names of nodes that stay out. Nobody waits for them.
    """
    start_s, start_ns = clock.now_s(), clock.now_ns()
    limit_s = slowed(DUMP_TIMEOUT_S)
    dumps = Dumps()
    nodes = service.nodes
    names = [node.name for node in nodes]
    while True:
        dumped = [service.replica(node, limit_s) for node in nodes]
        for state in await answers("replica of the system", dumped, limit_s):
            if state is not None:
                dumps.add(state)
        elapsed_s = clock.now_s() - start_s
        if dumps.met(name for name in names if name not in without) or elapsed_s >= SETTLE_S:
            return replace(dumps.compared(names, seconds=elapsed_s, without=without), from_ns=start_ns)
        await asyncio.sleep(POLL_S)


class Dumps:
    """States of replicas, by applied index. Equal states at one index are stored once, so that many dumps stay small."""

    def __init__(self) -> None:
        self._at: dict[int, list[ReplicaState]] = {}
        self._applied: dict[str, int] = {}
        self._unplaced: dict[str, ReplicaState] = {}  # the last state of each node whose service has no common log

    def add(self, state: ReplicaState) -> None:
        """Adds one dump."""
        if state.applied_index is None:
            self._unplaced[state.node] = state
            return
        self._applied[state.node] = state.applied_index
        group = self._at.setdefault(state.applied_index, [])
        for known in group:
            if _equal(known.state, state.state):
                if all(other.node != state.node or other.state is not known.state for other in group):
                    group.append(replace(state, state=known.state))
                return
        group.append(state)

    def met(self, names: Iterable[str]) -> bool:
        """Returns whether all these nodes were at one applied index, or are equal without one."""
        wanted = set(names)
        if wanted <= self._unplaced.keys():
            first, *others = (self._unplaced[name].state for name in wanted)
            return all(_equal(first, other) for other in others)
        return any(wanted <= {state.node for state in group} for group in self._at.values())

    def compared(self, names: Iterable[str], *, seconds: float, without: Collection[str] = ()) -> Replicas:
        """Compares the states at each index, and without a common log those of the nodes that had to become equal.

        Args:
            names: All nodes, in order.
            seconds: The duration of the dumps.
            without: The names of nodes that stayed out.
        """
        names = tuple(names)
        states: dict[int | None, list[ReplicaState]] = {index: self._at[index] for index in sorted(self._at)}
        states[None] = [self._unplaced[name] for name in names if name in self._unplaced and name not in without]
        nodes_at = {index: list(dict.fromkeys(state.node for state in group)) for index, group in states.items()}
        first: list[Difference] = []
        count = 0
        for index, group in states.items():
            differences = _differences(index, group)
            count += len(differences)
            first += differences[: MAX_DIFFERING - len(first)]
        result = Replicas(
            applied={name: self._applied.get(name) for name in names},
            compared={index: nodes for index, nodes in nodes_at.items() if len(nodes) > 1},
            unplaced=[name for name in names if name in self._unplaced],
            differing=first,
            differing_keys=count,
            seconds=seconds,
            out=[name for name in names if name in without],
        )
        return replace(result, keys=len({key for state in states[result.largest] for key in state.state}))


def _differences(index: int | None, group: Sequence[ReplicaState]) -> list[Difference]:
    """Returns the keys that differ between the states of a group at one applied index."""
    if all(state.state is group[0].state for state in group):
        return []
    labels: dict[str, ReplicaState] = {}
    states: Counter[str] = Counter()
    for state in group:
        states[state.node] += 1
        again = f" (state {states[state.node]})" if states[state.node] > 1 else ""
        labels[f"{state.node}{again}"] = state
    differences = []
    for key in sorted({key for state in group for key in state.state}):
        holders = {label: state.state[key] for label, state in labels.items() if key in state.state}
        lacking = tuple(label for label in labels if label not in holders)
        one, *others = holders.values()
        if lacking or not all(_same(one, other) for other in others):
            differences.append(Difference(applied_index=index, key=key, values=holders, lacking=lacking))
    return differences


def _equal(one: Mapping[str, Value], other: Mapping[str, Value]) -> bool:
    return one is other or (one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items()))


def _same(one: Value, other: Value) -> bool:
    """Returns whether two values are the same JSON; `1` differs from `true` and from `1.0`."""
    if type(one) is type(other) and isinstance(one, int | str | None):
        return bool(one == other)
    return _text(one) == _text(other)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
