"""Transactions over lists on a real cluster, for the integration tests of the systems that serve them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.op import Invocation, Ok
from tests.outcomes import asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node
    from harness.op import Outcome, Value
    from harness.system import System


def assert_that_all_nodes_act_on_the_same_keys(system: System, nodes: Sequence[Node]) -> None:
    """Appends through three nodes are all in both lists, in the same order, and a transaction reads its own writes.

    Args:
        system: The system with the workload `list-append`. Its keys are empty.
        nodes: Three nodes that serve.
    """

    async def transact(node: Node, *transactions: list[list[Value]]) -> list[Outcome]:
        return await asked(system.client(1, node), (Invocation("txn", mops) for mops in transactions))

    async def all_of_it() -> tuple[list[Outcome], list[Outcome]]:
        appends: list[list[list[Value]]] = [
            [["append", "a", place], ["append", "b", place], ["r", "a", None]] for place in range(3)
        ]
        done = await asyncio.gather(*(transact(node, mops) for node, mops in zip(nodes, appends, strict=True)))
        return [each for some in done for each in some], await transact(
            nodes[0], [["r", "a", None], ["r", "b", None], ["r", "c", None]]
        )

    done, [read] = asyncio.run(all_of_it())
    assert isinstance(read, Ok)
    [_, _, first], [_, _, second], [_, _, absent] = read.value
    assert (first, sorted(first), absent) == (second, [0, 1, 2], None)
    for place, outcome in enumerate(done):
        assert isinstance(outcome, Ok)
        assert outcome.value[2] == ["r", "a", first[: first.index(place) + 1]]
