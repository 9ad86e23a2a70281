"""The base class of services in memory and in virtual time: a network for requests, and runs of workloads.

Requests and answers take random times and get lost, nodes refuse and hang, and a request can still take effect long after its
client has given up. A correct service can do all this under faults. A bug is something that it must not do.
"""

from __future__ import annotations

import abc
import asyncio
import enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.combinators import phases, sleep, time_limit
from harness.errors import LabrysError
from harness.history import HistoryWriter, pair, read_history
from harness.node import Node
from harness.op import Fail, Info
from harness.randomness import stream
from harness.testing import drive_virtually

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from harness.generator import Answer, Asker, Generator
    from harness.load import Load
    from harness.op import Invocation, Op, Operation, Outcome
    from harness.workload import Workload

TIMEOUT_S = 1.0
LATEST_S = 3 * TIMEOUT_S  # after this, no request takes effect any more
NODES = 3

BugT = TypeVar("BugT", bound=enum.StrEnum)


class Service(abc.ABC, Generic[BugT]):
    """Some nodes that serve clients; a client factory. A subclass carries out the requests.

    Attributes:
        late: The number of requests that took effect after their client had given up.
        bugs: How often the bug occurred.
        draws: The random numbers.
    """

    def __init__(self, seed: int, bug: BugT | None, rates: Mapping[BugT, float]) -> None:
        """Makes a service.

        Args:
            seed: The seed of all random numbers.
            bug: The planted bug; None for the correct version.
            rates: The probability of each bug.
        """
        self.late = 0
        self.bugs = 0
        self.draws: random.Random = stream(seed, "service")
        self._bug = bug
        self._rates = rates
        self._background: set[asyncio.Task[None]] = set()

    def __call__(self, process: int, node: Node) -> Client:
        """Makes a client."""
        return Client(self, node)

    @abc.abstractmethod
    async def apply(self, invocation: Invocation) -> Outcome:
        """Carries out a request, at the time when it takes effect."""

    async def serve(self, invocation: Invocation) -> Outcome:
        """Carries out an operation, with the delays and losses of a network."""
        fate = self.draws.random()
        if fate < 0.02:
            return Info("no-answer: the request was lost")
        if fate < 0.04:
            return Fail("not-leader")
        if fate < 0.05:
            self._later(invocation)
            return Info("no-answer: the connection broke")
        await asyncio.sleep(self.draws.expovariate(200))
        if fate < 0.06:
            self._later(invocation)
            await asyncio.sleep(60)
        outcome = await self.apply(invocation)
        if fate < 0.08:
            return Info("no-answer: the answer was lost")
        await asyncio.sleep(self.draws.expovariate(200))
        return outcome

    def strikes(self, bug: BugT) -> bool:
        """Draws whether the bug occurs here."""
        strikes = self._bug is bug and self.draws.random() < self._rates[bug]
        self.bugs += strikes
        return strikes

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Runs work that outlives its request."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _later(self, invocation: Invocation) -> None:
        """Applies a request independently of its client, perhaps after its time-out."""

        async def apply() -> None:
            await asyncio.sleep(self.draws.uniform(0, LATEST_S * 0.9))
            await self.apply(invocation)
            self.late += 1

        self.start(apply())


def now_s() -> float:
    """Returns the virtual time."""
    return asyncio.get_running_loop().time()


class Client:
    """A connection to a service."""

    def __init__(self, service: Service[Any], node: Node) -> None:
        self.node = node
        self._service = service

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Sends a request to the service."""
        return await self._service.serve(invocation)

    async def close(self) -> None:
        """Does nothing: there is no connection."""


class _Lazily:
    """A generator that is made at its first call."""

    def __init__(self, make: Callable[[], Generator]) -> None:
        self._make = make
        self._child: Generator | None = None

    def ask(self, asker: Asker) -> Answer:
        """Asks the child."""
        if self._child is None:
            self._child = self._make()
        return self._child.ask(asker)

    def update(self, event: Op) -> None:
        """Tells the child."""
        if self._child is not None:
            self._child.update(event)


def run(
    workload: Workload, service: Service[Any], *, seed: int, load: Load, seconds: float, path: Path
) -> Sequence[Operation]:
    """Runs a workload and its final reads through the real interpreter into a real file, and reads that back."""
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
    return pair(recorded.ops)
