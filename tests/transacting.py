"""Transactions over lists, for the tests of the systems that serve them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from harness.op import Invocation, Ok, Operation, OpType
from tests.outcomes import asked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

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
            [["append", "a", index], ["append", "b", index], ["r", "a", None]] for index in range(3)
        ]
        done = await asyncio.gather(*(transact(node, mops) for node, mops in zip(nodes, appends, strict=True)))
        return [outcome for some in done for outcome in some], await transact(
            nodes[0], [["r", "a", None], ["r", "b", None], ["r", "c", None]]
        )

    done, [read] = asyncio.run(all_of_it())
    assert isinstance(read, Ok)
    [_, _, first], [_, _, second], [_, _, absent] = read.value
    assert (first, sorted(first), absent) == (second, [0, 1, 2], None)
    for index, outcome in enumerate(done):
        assert isinstance(outcome, Ok)
        assert outcome.value[2] == ["r", "a", first[: first.index(index) + 1]]


async def random_appends(
    random: Random, made: Callable[[], Callable[[list[Any]], Awaitable[Outcome]]]
) -> list[Operation]:
    """Returns transactions of five clients on three keys.

    Args:
        random: Draws the transactions.
        made: Makes what carries out the transactions of a client. What does not end with `Ok` counts as failed.
    """
    clock, written, operations = [0], [0], []

    async def work(process: int) -> None:
        carry_out = made()
        for _ in range(8):
            mops: list[Any] = []
            for _ in range(random.randint(1, 3)):
                key = random.choice("xyz")
                written[0] += 1
                mops.append(["r", key, None] if random.random() < 0.5 else ["append", key, written[0]])
            clock[0] += 1
            start = clock[0]
            outcome = await carry_out(mops)
            clock[0] += 1
            operations.append(
                Operation(
                    process=process, f="txn", value=mops, result=outcome.value if isinstance(outcome, Ok) else None,
                    type=OpType.OK if isinstance(outcome, Ok) else OpType.FAIL, start_ns=start, end_ns=clock[0],
                    invoke_index=start, complete_index=clock[0],
                )
            )  # fmt: skip

    await asyncio.gather(*(work(process) for process in range(5)))
    return sorted(operations, key=lambda operation: operation.invoke_index)
