"""Drives clients with the operations of a generator, and records every event.

`harness.driver` performs one operation, and `harness.closed_loop` and `harness.open_loop` choose when to ask the generator. All
of it runs on one event loop, so a generator needs no locks, and a run in a virtual loop can be repeated exactly.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.closed_loop import ClosedDriver
from harness.driver import Setting
from harness.errors import InputError
from harness.load import ClosedLoop
from harness.open_loop import OpenDriver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.client import ClientFactory
    from harness.clock import Clock
    from harness.driver import Driver
    from harness.generator import Generator
    from harness.history import Recorder
    from harness.load import Load
    from harness.node import Node

STOP_GRACE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveResult:
    """The counts of a drive.

    Attributes:
        next_process: The first process number for a later drive of the same run.
        operations: The number of invokes.
        ok: Operations that happened.
        failed: Operations that certainly did not happen.
        unknown: Operations that may have happened, including those without an answer.
        shed: Arrivals of an open loop without an operation, because their node had its maximum in flight.
        unused: Arrivals of an open loop for which the generator had no operation.
        timeouts: Operations that were abandoned at their time-out.
        close_errors: Clients that could not be closed.
    """

    next_process: int
    operations: int
    ok: int
    failed: int
    unknown: int
    shed: int
    unused: int
    timeouts: int
    close_errors: int


async def drive(
    *,
    generator: Generator,
    clients: ClientFactory,
    nodes: Sequence[Node],
    load: Load,
    seed: int,
    clock: Clock,
    history: Recorder,
    timeout_s: float,
    stop: asyncio.Event,
    first_process: int = 0,
) -> DriveResult:
    """Performs operations until the generator ends, or `stop` is set.

    Args:
        generator: Chooses the operations.
        clients: Makes a client for each process.
        nodes: The nodes of the clients.
        load: Closed loop or open loop.
        seed: The root seed; arrivals of an open loop draw from its stream `arrivals/{node}`.
        clock: The run's clock.
        history: Records all events.
        timeout_s: The time after which an operation is `info`, and its client is abandoned.
        stop: When set, no new operation starts; operations in flight are `info` after `STOP_GRACE_S`.
        first_process: The first process number that no earlier drive of this run used.

    Raises:
        GeneratorStuck: The generator lets all workers wait for ever.
        InputError: JSON cannot represent a value of the generator, or it has no method `update`.
        InfrastructureError: Writing the history failed.
    """
    if not hasattr(generator, "update"):
        raise InputError(
            f"the generator {type(generator).__name__} has no method update(event); see docs/guide/new-workload.md"
        )
    setting = Setting(
        generator=generator,
        clients=clients,
        nodes=nodes,
        seed=seed,
        clock=clock,
        history=history,
        timeout_s=timeout_s,
        first_process=first_process,
    )
    driver: Driver = ClosedDriver(setting, load) if isinstance(load, ClosedLoop) else OpenDriver(setting, load)
    stopping = asyncio.create_task(stop.wait())
    try:
        if stop.is_set():
            driver.done.set_result(None)
        else:
            driver.start()
        await asyncio.wait((driver.done, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not driver.done.done():
            driver.halt()
            await asyncio.wait((driver.done,), timeout=STOP_GRACE_S)
            if not driver.done.done():
                driver.interrupt()
        await driver.done
    finally:
        stopping.cancel()
        await driver.close()
    counts = driver.counts
    return DriveResult(
        next_process=driver.next_process,
        operations=counts.ok + counts.failed + counts.unknown,
        ok=counts.ok,
        failed=counts.failed,
        unknown=counts.unknown,
        shed=counts.shed,
        unused=counts.unused,
        timeouts=counts.timeouts,
        close_errors=counts.close_errors,
    )
