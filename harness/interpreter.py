"""Drives clients with what a generator decides, and records everything.

The way in. What happens to one operation is in `harness.driver`; who asks the generator, and when, in `harness.closed_loop` and
`harness.open_loop`. All of it happens on one event loop, one step after the other, so that a generator needs no locks, and a
whole run in a virtual loop is the same every time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.closed_loop import ClosedDriver
from harness.driver import Setting
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
    """What a drive did, beside the history.

    Attributes:
        next_process: The first process number for a later drive of the same run.
        operations: Invokes.
        ok: Operations that happened.
        failed: Operations that certainly did not.
        unknown: Operations that may have; those without an answer included.
        shed: Arrivals of an open loop that were not performed, because their node had its maximum in flight.
        unused: Arrivals of an open loop that the generator had nothing for at that time.
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
    """Performs operations until the generator has nothing for anyone any more, or `stop` is set.

    Args:
        generator: Decides what is done.
        clients: Makes a client for each process.
        nodes: Where clients are placed.
        load: Closed loop or open loop.
        seed: The root seed; arrivals of an open loop draw from its stream `arrivals/{node}`.
        clock: The run's clock.
        history: Gets all events.
        timeout_s: After this an operation is `info`, and its client is abandoned.
        stop: When set, nothing new is invoked; what is in flight has `STOP_GRACE_S` to be answered, and is `info` then.
        first_process: The first process number that no earlier drive of this run used.

    Raises:
        GeneratorStuck: The generator lets everyone wait for ever.
        InputError: The generator gave a value that a history cannot hold.
        InfrastructureError: The history cannot be written any more.
    """
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
