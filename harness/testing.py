"""Runs a generator through the real interpreter in virtual time, against a function in place of clients.

It is for tests of generators and workloads. A simulated hour takes milliseconds, and the seed determines all random numbers,
so a test can compare whole sequences of events.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.clock import Clock, run_virtual
from harness.history import MemoryHistory
from harness.interpreter import drive
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import Ok

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from harness.client import ClientFactory
    from harness.generator import Generator
    from harness.history import Recorder
    from harness.interpreter import DriveResult
    from harness.load import Load
    from harness.op import Invocation, Op, Outcome

    Latency: TypeAlias = Callable[[int, Invocation], float]
    Respond: TypeAlias = Callable[[int, Invocation], Outcome]

TIMEOUT_S = 5.0
LATENCY_S = 0.01


def simulate(
    generator: Generator,
    *,
    load: Load | None = None,
    nodes: int = 3,
    latency_s: float | Latency = LATENCY_S,
    respond: Respond | None = None,
    timeout_s: float = TIMEOUT_S,
    stop_s: float | None = None,
    seed: int = 0,
) -> list[Op]:
    """Runs a generator to its end and returns all events.

    Args:
        generator: Chooses the operations.
        load: Closed loop or open loop; by default three workers.
        nodes: The number of nodes, named `n1`, `n2`, ...
        latency_s: The duration of an operation, or a function of process and invocation that returns it.
        respond: A function of process and invocation that returns the outcome; by default `Ok` with the argument.
        timeout_s: The time-out of an operation.
        stop_s: The time at which the run stops; None if the generator ends it.
        seed: The root seed.
    """
    _, ops = drive_virtually(
        generator,
        clients=lambda process, node: _Client(process, node, latency_s, respond or _succeed),
        load=load,
        nodes=nodes,
        timeout_s=timeout_s,
        stop_s=stop_s,
        seed=seed,
    )
    return ops


def drive_virtually(
    generator: Generator,
    *,
    clients: ClientFactory,
    load: Load | None = None,
    nodes: int = 3,
    timeout_s: float = TIMEOUT_S,
    stop_s: float | None = None,
    seed: int = 0,
    first_process: int = 0,
    history: Recorder | None = None,
) -> tuple[DriveResult, list[Op]]:
    """Drives given clients in virtual time; arguments as in `simulate` and `harness.interpreter.drive`."""
    recorder = MemoryHistory() if history is None else history

    async def main() -> DriveResult:
        stop = asyncio.Event()
        if stop_s is not None:
            asyncio.get_running_loop().call_later(stop_s, stop.set)
        return await drive(
            generator=generator,
            clients=clients,
            nodes=[Node(name=f"n{number}", address=f"10.0.0.{number}") for number in range(1, nodes + 1)],
            load=load or ClosedLoop(concurrency=3),
            seed=seed,
            clock=Clock(asyncio.get_running_loop()),
            history=recorder,
            timeout_s=timeout_s,
            stop=stop,
            first_process=first_process,
        )

    return run_virtual(main()), recorder.ops


def _succeed(process: int, invocation: Invocation) -> Outcome:  # noqa: ARG001 - the same for all
    return Ok(invocation.value)


class _Client:
    def __init__(self, process: int, node: Node, latency_s: float | Latency, respond: Respond) -> None:
        self.node = node
        self._process = process
        self._latency_s = latency_s
        self._respond = respond

    async def invoke(self, invocation: Invocation) -> Outcome:
        latency_s = self._latency_s
        await asyncio.sleep(latency_s if isinstance(latency_s, float | int) else latency_s(self._process, invocation))
        return self._respond(self._process, invocation)

    async def close(self) -> None:
        """Does nothing."""
