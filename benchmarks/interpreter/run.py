"""How many operations a second the interpreter performs, with a client that answers at once and a history on disk.

Jepsen states more than 20,000 operations a second for its interpreter; that is the figure to beat. The floor is the same number
of bare calls of the same client in one task: what the interpreter adds is the rest.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.clock import Clock
from harness.combinators import limit
from harness.history import HistoryWriter
from harness.interpreter import drive
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import Invocation, Ok
from workloads.register import RegisterOptions, RegisterWorkload

if TYPE_CHECKING:
    from harness.op import Outcome

OPERATIONS = 100_000
ROUNDS = 3
JEPSEN_PER_S = 20_000
NODES = tuple(Node(name=f"n{number}", address="192.0.2.1") for number in range(1, 6))


class MemoryClient:
    """Answers at once from a dictionary that all clients share."""

    def __init__(self, node: Node, values: dict[str | None, int]) -> None:
        self.node = node
        self._values = values

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Reads or writes a register."""
        if invocation.f == "read":
            return Ok(self._values.get(invocation.key))
        self._values[invocation.key] = invocation.value[1] if invocation.f == "cas" else invocation.value
        return Ok(invocation.value)

    async def close(self) -> None:
        """Has nothing to close."""


async def interpreted(workers: int, path: Path) -> float:
    """Performs the operations through the interpreter; returns seconds."""
    values: dict[str | None, int] = {}
    history = HistoryWriter(path, {})
    generator = RegisterWorkload(RegisterOptions()).generator(seed=1, streams=workers)
    began_s = time.perf_counter()
    await drive(
        generator=limit(OPERATIONS, generator),
        clients=lambda _process, node: MemoryClient(node, values),
        nodes=NODES,
        load=ClosedLoop(concurrency=workers),
        seed=1,
        clock=Clock(asyncio.get_running_loop()),
        history=history,
        timeout_s=5.0,
        stop=asyncio.Event(),
    )
    history.close()
    return time.perf_counter() - began_s


async def bare() -> float:
    """Calls the client as often, with nothing around it; returns seconds."""
    client = MemoryClient(NODES[0], {})
    invocation = Invocation("write", 1, "k")
    began_s = time.perf_counter()
    for _ in range(OPERATIONS):
        await client.invoke(invocation)
    return time.perf_counter() - began_s


def main() -> None:
    """Prints the table."""
    floor_s = min(asyncio.run(bare()) for _ in range(ROUNDS))
    print(f"bare calls: {OPERATIONS / floor_s:,.0f}/s\n")
    print("| workers | operations/s (best of 3) | microseconds each | times Jepsen's 20,000/s |")
    print("|---:|---:|---:|---:|")
    for workers in (1, 10, 100):
        with tempfile.TemporaryDirectory() as folder:
            times = [asyncio.run(interpreted(workers, Path(folder) / f"{turn}.jsonl")) for turn in range(ROUNDS)]
        per_s = OPERATIONS / min(times)
        print(f"| {workers} | {per_s:,.0f} | {1e6 / per_s:.1f} | {per_s / JEPSEN_PER_S:.2f} |")


if __name__ == "__main__":
    main()
