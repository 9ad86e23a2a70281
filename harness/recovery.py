"""What happens after healing: the wait for recovery, the last reads on every node, the comparison of replicas.

Every wait here is bounded and none of them aborts a run. A system that works again only after its nodes were restarted, or
not at all, is a finding, recorded as `Recovery` and judged as a part of the verdict.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.cluster import on_all
from harness.errors import LabrysError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.clock import Clock
    from harness.node import Node
    from harness.op import Value
    from harness.system import ReplicaState, System

SETTLE_S = 20.0
DUMP_TIMEOUT_S = 5.0
POLL_S = 0.5
MAX_DIFFERING = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How the system came back after everything was healed.

    Attributes:
        seconds: From healing until it worked, or until the last wait gave up.
        restarted: Whether every node had to be restarted, because the first wait ended without success.
        first_error: What was missing at the end of the first wait; None if it succeeded.
        error: What was missing at the end of the last wait; None if the system works.
    """

    seconds: float
    restarted: bool
    first_error: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """A comparison of all replicas with clients at rest.

    Attributes:
        supported: Whether the system can dump a replica at all.
        settled: Whether all replicas were seen at one applied index.
        applied: Each node's applied index when last seen; None where it did not answer.
        keys: The number of keys of a replica.
        differing: Up to some keys that differ, each with the value of every node.
        seconds: How long the comparison took.
    """

    supported: bool
    settled: bool
    applied: Mapping[str, int | None]
    keys: int = 0
    differing: Sequence[Mapping[str, Any]] = field(default=())
    seconds: float = 0.0


async def recover(system: System, nodes: Sequence[Node], *, timeout_s: float, clock: Clock) -> Recovery:
    """Waits until the system works; if it does not in time, restarts every node and waits once more."""
    start_s = clock.now_s()
    first_error = await _ready(system, nodes, timeout_s)
    if first_error is None:
        return Recovery(seconds=clock.now_s() - start_s, restarted=False, first_error=None, error=None)

    def restart(node: Node) -> None:
        system.kill(node)
        system.start(node)

    try:
        await asyncio.to_thread(on_all, nodes, restart)
        error = await _ready(system, nodes, timeout_s)
    except LabrysError as failed:
        error = str(failed)
    return Recovery(seconds=clock.now_s() - start_s, restarted=True, first_error=first_error, error=error)


async def _ready(system: System, nodes: Sequence[Node], timeout_s: float) -> str | None:
    try:
        await asyncio.to_thread(system.wait_ready, nodes, timeout_s)
    except LabrysError as error:
        return str(error)
    return None


async def compare_replicas(system: System, nodes: Sequence[Node], *, clock: Clock) -> Replicas:
    """Dumps all replicas until they are at one applied index, for a bounded time, and compares them there."""
    if not system.dumps_replicas:
        return Replicas(supported=False, settled=False, applied={})
    start_s = clock.now_s()
    seen: dict[str, ReplicaState] = {}
    while True:
        dumps = await asyncio.gather(*(system.replica(node, DUMP_TIMEOUT_S) for node in nodes))
        states = [dump for dump in dumps if dump is not None]
        seen.update({state.node: state for state in states})
        settled = len(states) == len(nodes) and len({state.applied_index for state in states}) == 1
        elapsed_s = clock.now_s() - start_s
        if settled or elapsed_s >= SETTLE_S:
            return Replicas(
                supported=True,
                settled=settled,
                applied={node.name: seen[node.name].applied_index if node.name in seen else None for node in nodes},
                keys=max((len(state.state) for state in states), default=0),
                differing=_differing(states) if settled else (),
                seconds=elapsed_s,
            )
        await asyncio.sleep(POLL_S)


def _differing(states: Sequence[ReplicaState]) -> Sequence[Mapping[str, Value]]:
    keys = sorted({key for state in states for key in state.state})
    differing = []
    for key in keys:
        values = {state.node: state.state.get(key) for state in states}
        if len({repr(value) for value in values.values()}) > 1:
            differing.append({"key": key, "values": values})
    return differing[:MAX_DIFFERING]
