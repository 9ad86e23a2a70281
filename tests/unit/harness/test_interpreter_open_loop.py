"""The open loop: arrivals do not wait for answers, and each dropped arrival is counted. Also the checks of loads."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from harness.clock import Clock, run_virtual
from harness.combinators import limit, time_limit
from harness.errors import InputError
from harness.generator import Later
from harness.history import MemoryHistory
from harness.interpreter import DriveResult, drive
from harness.load import ClosedLoop, OpenLoop, parse_concurrency
from harness.node import Node
from harness.op import Info, Invocation, Ok, Op, OpType
from harness.randomness import stream
from harness.testing import drive_virtually
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.generator import Answer, Asker, Generator
    from harness.load import Load
    from harness.op import Outcome

READ = Invocation("read")


class Service:
    """A client factory whose clients call a coroutine function of process and node."""

    def __init__(self, behave: Callable[[int, str], Awaitable[Outcome]]) -> None:
        self.behave = behave
        self.nodes: dict[int, str] = {}

    def __call__(self, process: int, node: Node) -> ServiceClient:
        """Makes a client."""
        self.nodes[process] = node.name
        return ServiceClient(self, process, node)


class ServiceClient:
    """A client of a `Service`."""

    def __init__(self, service: Service, process: int, node: Node) -> None:
        self.service = service
        self.process = process
        self.node = node

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Calls the function of the service."""
        return await self.service.behave(self.process, self.node.name)

    async def close(self) -> None:
        """Does nothing."""


def run(generator: Generator, service: Service, load: Load, **more: Any) -> tuple[DriveResult, list[Op]]:
    """Drives in virtual time; returns the result and the history."""
    return drive_virtually(generator, clients=service, load=load, seed=1, **more)


async def answer_at_once(_: int, __: str) -> Outcome:
    """Succeeds in no time."""
    return Ok()


async def answer_slowly(_: int, __: str) -> Outcome:
    """Succeeds after a tenth of a second."""
    await asyncio.sleep(0.1)
    return Ok()


async def hang(_: int, __: str) -> Outcome:
    """Never answers."""
    await asyncio.sleep(10**6)
    raise AssertionError


def arrivals_s(node: str, seed: int = 1, rate: float = 10.0, until_s: float = 10.0) -> list[float]:
    """Returns the arrival times of a seed at a node."""
    draws = stream(seed, f"arrivals/{node}")
    times = itertools.accumulate(iter(lambda: draws.expovariate(rate), None))
    return list(itertools.takewhile(lambda time_s: time_s < until_s, times))


def test_arrivals_are_drawn_from_the_node_s_stream_and_do_not_wait() -> None:
    """The seed determines the schedule of each node, and the events have the scheduled time."""

    async def behave(process: int, _: str) -> Outcome:
        await asyncio.sleep(1.0 if process % 2 else 0.001)
        return Ok()

    _, ops = run(time_limit(10, READ), Service(behave), OpenLoop(rate_per_node=10), timeout_s=5)
    for node in ("n1", "n2", "n3"):
        scheduled = [(op.scheduled_ns or 0) / 1e9 for op in ops if op.type is OpType.INVOKE and op.node == node]
        # The time limit counts from the first question, which is the first arrival anywhere.
        expected = arrivals_s(node, until_s=10 + min(arrivals_s(name)[0] for name in ("n1", "n2", "n3")))
        assert scheduled == pytest.approx(expected)


def test_a_stuck_node_keeps_getting_requests() -> None:
    """Its pool grows up to its maximum in flight, further arrivals are counted, and other nodes are not affected."""
    service = Service(lambda process, node: (hang if node == "n2" else answer_at_once)(process, node))
    load = OpenLoop(rate_per_node=50, max_in_flight=20, processes_per_node=2)
    result, ops = run(time_limit(1, READ), service, load, timeout_s=30)
    first_s = min(arrivals_s(node, rate=50)[0] for node in ("n1", "n2", "n3"))
    arrivals = {node: len(arrivals_s(node, rate=50, until_s=1 + first_s)) for node in ("n1", "n2", "n3")}
    invoked = Counter(op.node for op in ops if op.type is OpType.INVOKE)
    assert invoked["n1"] == arrivals["n1"]
    assert invoked["n3"] == arrivals["n3"]
    assert invoked["n2"] == 20
    assert result.timeouts == 20
    # The driver sees the end of the generator at the first arrival with a free process, so shed arrivals count until then.
    assert result.shed >= arrivals["n2"] - 20
    assert sum(node != "n2" for node in service.nodes.values()) == 4


def test_processes_of_a_node_take_turns() -> None:
    """All processes of a node work, so that clients with different routes all work."""
    _, ops = run(limit(300, READ), Service(answer_at_once), OpenLoop(rate_per_node=10, processes_per_node=4))
    shares = Counter((op.node, op.process) for op in ops if op.type is OpType.INVOKE)
    assert len(shares) == 12
    for node in ("n1", "n2", "n3"):
        counts = [count for (name, _), count in shares.items() if name == node]
        assert max(counts) - min(counts) <= 1


def test_after_an_info_a_pool_gets_a_process_with_a_fresh_number() -> None:
    """Each number is used once, and the node stays the same."""

    async def behave(_: int, __: str) -> Outcome:
        return Info("perhaps")

    service = Service(behave)
    result, ops = run(limit(50, READ), service, OpenLoop(rate_per_node=10, processes_per_node=1))
    processes = [op.process for op in ops if op.type is OpType.INVOKE]
    assert len(set(processes)) == 50
    assert result.next_process > max(int(process) for process in processes)
    assert all(op.node == service.nodes[int(op.process)] for op in ops)


def test_an_arrival_without_an_operation_is_counted() -> None:
    """If the generator has no operation at an arrival, the arrival does not wait."""
    began_ns: list[int] = []

    def once_a_second(asker: Asker) -> Answer:
        due_ns = began_ns[0] + len(began_ns) * NS_PER_S if began_ns else 0
        if asker.now_ns < due_ns:
            return Later(due_ns)
        began_ns.append(asker.now_ns)
        return READ

    result, ops = run(time_limit(10, once_a_second), Service(answer_at_once), OpenLoop(rate_per_node=10))
    assert result.operations == 10 == len(ops) // 2
    assert 200 < result.unused < 400


def test_stopping_an_open_loop_ends_its_arrivals() -> None:
    """No new operation starts, and operations in flight end as in a closed loop."""
    for behave, unknown in ((answer_slowly, False), (hang, True)):
        result, ops = run(limit(10**9, READ), Service(behave), OpenLoop(rate_per_node=10), timeout_s=60, stop_s=2)
        assert max(op.time_ns for op in ops if op.type is OpType.INVOKE) <= 2_000_000_000
        assert (result.unknown > 0) == unknown
        assert result.operations * 2 == len(ops)


def test_an_open_loop_that_is_behind_catches_up() -> None:
    """Arrivals that were due while the loop was busy keep their due times."""

    async def main() -> list[Op]:
        loop = asyncio.get_running_loop()
        history = MemoryHistory()

        async def busy(_: int, __: str) -> Outcome:
            loop._jumping.now_s += 0.05  # type: ignore[attr-defined]  # the loop is blocked for so long
            return Ok()

        await drive(
            generator=limit(40, READ),
            clients=Service(busy),
            nodes=[Node(name="n1", address="10.0.0.1")],
            load=OpenLoop(rate_per_node=100),
            seed=1,
            clock=Clock(loop),
            history=history,
            timeout_s=60,
            stop=asyncio.Event(),
        )
        return history.ops

    ops = run_virtual(main())
    scheduled = [(op.scheduled_ns or 0) / 1e9 for op in ops if op.type is OpType.INVOKE]
    assert scheduled == pytest.approx(arrivals_s("n1", rate=100)[:40])
    assert ops[-1].time_ns / 1e9 >= 2.0


@pytest.mark.parametrize(("text", "expected"), [("10", 10), ("2n", 10), ("1n", 5), (" 7 ", 7)])
def test_concurrency_is_a_number_or_a_multiple_of_the_nodes(text: str, expected: int) -> None:
    """The text is as on the command line, for five nodes."""
    assert parse_concurrency(text, 5) == expected


@pytest.mark.parametrize("text", ["", "0", "0n", "-3", "n", "2.5n", "3m", "9" * 10])
def test_a_bad_concurrency_is_refused(text: str) -> None:
    """The message has an example."""
    with pytest.raises(InputError, match=r"e\.g\. 10, or 2n for two for each node"):
        parse_concurrency(text, 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClosedLoop(concurrency=0),
        lambda: OpenLoop(rate_per_node=0),
        lambda: OpenLoop(rate_per_node=float("nan")),
        lambda: OpenLoop(rate_per_node=float("inf")),
        lambda: OpenLoop(rate_per_node=1, max_in_flight=2, processes_per_node=3),
        lambda: OpenLoop(rate_per_node=1, processes_per_node=0),
    ],
)
def test_a_bad_load_is_refused(make: Callable[[], Load]) -> None:
    """A load without operations, or with contradictory limits, is an error."""
    with pytest.raises(InputError):
        make()
