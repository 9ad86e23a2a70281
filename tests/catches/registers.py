"""A register service in memory and in virtual time, correct or with one planted bug.

Requests and answers take random times and get lost, nodes refuse and hang, and a request whose client has given up may still
take effect much later: all that a correct service may do under faults. A bug is one thing more that it must not do.
"""

from __future__ import annotations

import asyncio
import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.combinators import phases, sleep, time_limit
from harness.errors import LabrysError
from harness.history import HistoryWriter, pair, read_history
from harness.node import Node
from harness.op import Fail, Info, Ok
from harness.randomness import stream
from harness.simulation import drive_virtually

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.generator import Answer, Asker, Generator
    from harness.load import Load
    from harness.op import Invocation, Op, Operation, Outcome, Value
    from harness.workload import Workload

TIMEOUT_S = 1.0
LATEST_S = 3 * TIMEOUT_S  # after this, no request takes effect any more
NODES = 3


class Bug(enum.StrEnum):
    """What a service can get wrong."""

    STALE_READ = "stale read"  # a node that lags behind answers from what it has
    LOST_WRITE = "lost write"  # an acknowledged write never takes effect
    DIRTY_READ = "dirty read after fail"  # a refused write takes effect
    CAS_TWICE = "cas applied twice"  # a repeated request writes once more, after others have written
    CAS_RACE = "cas not atomic"  # another write comes between the comparison and the writing
    ROLLBACK = "rollback"  # a new leader misses the last second of what was acknowledged


# How often each strikes where it could; low enough that most operations are right.
RATES = MappingProxyType(
    {
        Bug.STALE_READ: 0.05,
        Bug.LOST_WRITE: 0.05,
        Bug.DIRTY_READ: 0.05,
        Bug.CAS_TWICE: 0.2,
        Bug.CAS_RACE: 1.0,  # harmless unless another write comes in between
        Bug.ROLLBACK: 0.01,
    }
)


class Service:
    """Registers on some nodes; a client factory.

    Attributes:
        late: How many requests took effect after their client had given up.
        bugs: How often the bug struck.
    """

    def __init__(self, seed: int, bug: Bug | None) -> None:
        self.late = 0
        self.bugs = 0
        self._bug = bug
        self._draws: random.Random = stream(seed, "service")
        self._values: dict[str, Value] = {}
        self._log: list[tuple[float, str, Value]] = []
        self._background: set[asyncio.Task[None]] = set()

    def __call__(self, process: int, node: Node) -> _Client:
        """Makes a client."""
        return _Client(self, node)

    async def serve(self, invocation: Invocation) -> Outcome:
        """Does an operation, with all the delays and losses of a network."""
        fate = self._draws.random()
        if fate < 0.02:
            return Info("no-answer: the request was lost")
        if fate < 0.04:
            return Fail("not-leader")
        if fate < 0.05:
            self._later(invocation)
            return Info("no-answer: the connection broke")
        await asyncio.sleep(self._draws.expovariate(200))
        if fate < 0.06:
            self._later(invocation)
            await asyncio.sleep(60)
        outcome = await self._apply(invocation)
        if fate < 0.08:
            return Info("no-answer: the answer was lost")
        await asyncio.sleep(self._draws.expovariate(200))
        return outcome

    def _later(self, invocation: Invocation) -> None:
        """Lets a request take effect on its own, whatever becomes of its client; perhaps after its time-out."""

        async def apply() -> None:
            await asyncio.sleep(self._draws.uniform(0, LATEST_S * 0.9))
            await self._apply(invocation)
            self.late += 1

        self._keep(asyncio.get_running_loop().create_task(apply()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _strikes(self, bug: Bug) -> bool:
        strikes = self._bug is bug and self._draws.random() < RATES[bug]
        self.bugs += strikes
        return strikes

    def _write(self, key: str, value: Value) -> None:
        self._values[key] = value
        self._log.append((asyncio.get_running_loop().time(), key, value))

    async def _apply(self, invocation: Invocation) -> Outcome:
        key, value = invocation.key or "", invocation.value
        if self._strikes(Bug.ROLLBACK):
            self._roll_back()
        if invocation.f == "read":
            return Ok(self._old(key) if self._strikes(Bug.STALE_READ) else self._values.get(key))
        if invocation.f == "cas":
            return await self._compare_and_set(key, value)
        if self._strikes(Bug.LOST_WRITE):
            return Ok(value)
        self._write(key, value)
        return Fail("not-leader") if self._strikes(Bug.DIRTY_READ) else Ok(value)

    async def _compare_and_set(self, key: str, value: list[Any]) -> Outcome:
        expected, new = value
        if self._values.get(key) != expected:
            return Fail("cas-mismatch")
        if self._strikes(Bug.CAS_RACE):
            await asyncio.sleep(0.02)
        self._write(key, new)
        if self._strikes(Bug.CAS_TWICE):

            async def again() -> None:
                await asyncio.sleep(0.2)
                self._write(key, new)

            self._keep(asyncio.get_running_loop().create_task(again()))
        return Ok(value)

    def _old(self, key: str) -> Value:
        """Returns what a node that lags by half a second has."""
        horizon_s = asyncio.get_running_loop().time() - 0.5
        return next((value for time_s, name, value in reversed(self._log) if name == key and time_s < horizon_s), None)

    def _roll_back(self) -> None:
        horizon_s = asyncio.get_running_loop().time() - 1.0
        self._log = [entry for entry in self._log if entry[0] < horizon_s]
        self._values = {key: value for _, key, value in self._log}


class _Client:
    """A connection to the service."""

    def __init__(self, service: Service, node: Node) -> None:
        self.node = node
        self._service = service

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Asks the service."""
        return await self._service.serve(invocation)

    async def close(self) -> None:
        """Nothing is open."""


class _Lazily:
    """A generator that is made when it is first asked."""

    def __init__(self, make: Callable[[], Generator]) -> None:
        self._make = make
        self._child: Generator | None = None

    def ask(self, asker: Asker) -> Answer:
        """Asks the child."""
        if self._child is None:
            self._child = self._make()
        return self._child.ask(asker)

    def told(self, event: Op) -> None:
        """Tells the child."""
        if self._child is not None:
            self._child.told(event)


def run(
    workload: Workload, *, seed: int, bug: Bug | None, load: Load, seconds: float, path: Path
) -> tuple[Service, Sequence[Operation]]:
    """Runs a workload and its final reads through the real interpreter into a real file, and reads that back."""
    service = Service(seed, bug)
    history = HistoryWriter(path, {"seed": seed})
    generator = phases(
        time_limit(seconds, workload.generator(seed=seed, streams=load.streams(NODES))),
        sleep(LATEST_S),
        _Lazily(lambda: workload.final_generator(history=history.ops, node=Node(name="n1", address="10.0.0.1"))),
        sleep(LATEST_S),
    )
    result, _ = drive_virtually(
        generator, clients=service, load=load, nodes=NODES, timeout_s=TIMEOUT_S, seed=seed, history=history
    )
    history.close()
    recorded = read_history(path)
    if recorded.torn or len(recorded.ops) != 2 * result.operations:
        raise LabrysError(f"expected {result.operations} operations in {path}, found {len(recorded.ops)} events")
    return service, pair(recorded.ops)
