"""The interpreter: the history is right and the run continues, whatever the clients do."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clock import Clock, run_virtual
from harness.closed_loop import GeneratorStuck
from harness.combinators import limit, phases, stagger, time_limit
from harness.driver import CLOSE_TIMEOUT_S, MAX_ERROR_CHARACTERS
from harness.errors import InfrastructureError, InputError
from harness.generator import Later
from harness.history import HistoryWriter, MemoryHistory, pair, read_history
from harness.interpreter import STOP_GRACE_S, DriveResult, drive
from harness.load import ClosedLoop, OpenLoop
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok, Op, OpType
from harness.randomness import stream
from harness.testing import drive_virtually, simulate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from harness.generator import Asker, Generator
    from harness.load import Load
    from harness.op import Outcome

MANY = 10**9
READ, WRITE = Invocation("read"), Invocation("write", 1, "k")
NODES = [Node(name=f"n{number}", address=f"10.0.0.{number}") for number in range(1, 4)]


class Service:
    """A client factory whose clients call a coroutine function; records opened and closed clients."""

    def __init__(
        self, behave: Callable[[int], Awaitable[Any]], close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.behave = behave
        self.closing = close
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.nodes: dict[int, str] = {}

    def __call__(self, process: int, node: Node) -> ServiceClient:
        """Makes a client."""
        self.opened.append(process)
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
        return await self.service.behave(self.process)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Calls the close function of the service."""
        self.service.closed.append(self.process)
        if self.service.closing is not None:
            await self.service.closing()


def run(
    generator: Generator, service: Any, *, load: Load | None = None, timeout_s: float = 1.0, **more: Any
) -> tuple[DriveResult, list[Op]]:
    """Drives in virtual time, by default with one worker; returns the result and the history."""
    load = load or ClosedLoop(concurrency=1)
    return drive_virtually(generator, clients=service, load=load, timeout_s=timeout_s, **more)


async def answer_at_once(_: int) -> Outcome:
    """Succeeds in no time."""
    return Ok()


async def answer_slowly(_: int) -> Outcome:
    """Succeeds after a tenth of a second."""
    await asyncio.sleep(0.1)
    return Ok()


async def hang(_: int) -> Outcome:
    """Never answers."""
    await asyncio.sleep(10**6)
    raise AssertionError


def test_a_generator_without_update_is_refused() -> None:
    """The error has the name of the method."""

    class Half:
        def ask(self, asker: object) -> None: ...

    with pytest.raises(InputError, match=r"the generator Half has no method update\(event\)"):
        simulate(Half())  # type: ignore[arg-type]  # as a plug-in without types


def test_an_operation_leaves_an_invoke_and_a_completion() -> None:
    """Each event has time, process, function, value, key and node. The completion has the time of the answer."""

    async def behave(_: int) -> Outcome:
        await asyncio.sleep(0.25)
        return Ok(7)

    result, ops = run(limit(1, Invocation("read", None, "k0", "final")), Service(behave))
    assert ops == [
        Op(0, 0, OpType.INVOKE, 0, "read", None, "k0", "n1", None, None, "final"),
        Op(1, 250_000_000, OpType.OK, 0, "read", 7, "k0", "n1", None, None, "final"),
    ]
    assert (result.operations, result.ok, result.failed, result.unknown) == (1, 1, 0, 0)


def test_a_completion_has_the_order_of_its_outcome(tmp_path: Path) -> None:
    """It is written and read back. If it is not an integer of 64 bits, the operation is an info."""
    orders = iter([-7, None, 2**63 - 1, 2**63, True])

    async def behave(_: int) -> Outcome:
        return Ok(7, order=next(orders))

    writer = HistoryWriter(tmp_path / "history.jsonl", {})
    _, ops = run(limit(5, READ), Service(behave), history=writer)
    writer.close()
    assert [(op.type, op.order) for op in ops if op.type is not OpType.INVOKE] == [
        (OpType.OK, -7), (OpType.OK, None), (OpType.OK, 2**63 - 1), (OpType.INFO, None), (OpType.INFO, None),
    ]  # fmt: skip
    assert "expected an integer from -2^63 to 2^63 - 1 as the order of 'read'" in (ops[-1].error or "")
    assert [op.order for op in read_history(tmp_path / "history.jsonl").ops] == [op.order for op in ops]


class RoutedService(Service):
    """A service with routed clients."""

    def __call__(self, process: int, node: Node) -> ServiceClient:
        """Makes a client that asks n9."""
        client = super().__call__(process, node)
        client.via = "n9"  # type: ignore[attr-defined]
        return client


def test_a_completion_has_the_node_that_a_routed_client_asked() -> None:
    """It also has it after a time-out. An invoke has none, because no node was asked yet."""
    for behave, kind in ((answer_at_once, OpType.OK), (hang, OpType.INFO)):
        _, ops = run(limit(1, READ), RoutedService(behave))
        assert [(op.type, op.via) for op in ops] == [(OpType.INVOKE, None), (kind, "n9")]
    _, ops = run(limit(1, READ), Service(answer_at_once))
    assert [op.via for op in ops] == [None, None]


def test_a_fail_keeps_its_process_and_its_error() -> None:
    """Its value is the argument, and the same process continues."""

    async def behave(_: int) -> Outcome:
        return Fail("not-leader: n2 leads")

    result, ops = run(limit(2, WRITE), Service(behave))
    assert [(op.type, op.process, op.value, op.error) for op in ops[1::2]] == [
        (OpType.FAIL, 0, 1, "not-leader: n2 leads"),
        (OpType.FAIL, 0, 1, "not-leader: n2 leads"),
    ]
    assert result.failed == 2


def test_after_an_info_another_process_takes_the_seat() -> None:
    """Process p is followed by p + concurrency at the same node, its client is closed, and a new one is made."""
    service = Service(lambda process: _info() if process < 3 else answer_at_once(process))
    result, ops = run(limit(6, READ), service, load=ClosedLoop(concurrency=3))
    assert [op.process for op in ops if op.type is OpType.INVOKE] == [0, 1, 2, 3, 4, 5]
    assert service.nodes == {0: "n1", 1: "n2", 2: "n3", 3: "n1", 4: "n2", 5: "n3"}
    assert sorted(service.closed) == [0, 1, 2, 3, 4, 5]
    assert result.next_process == 6


async def _info() -> Outcome:
    return Info("perhaps")


def test_a_later_drive_uses_fresh_processes() -> None:
    """Its numbers begin at `first_process`."""
    result, ops = run(limit(3, READ), Service(answer_at_once), load=ClosedLoop(concurrency=3), first_process=10)
    assert {op.process for op in ops} == {10, 11, 12}
    assert result.next_process == 13


def test_workers_are_spread_over_the_nodes() -> None:
    """Worker k is at node k mod n."""
    service = Service(answer_at_once)
    run(limit(7, READ), service, load=ClosedLoop(concurrency=7))
    assert [service.nodes[process] for process in range(7)] == ["n1", "n2", "n3", "n1", "n2", "n3", "n1"]


class MuteError(Exception):
    """An exception whose text raises another one."""

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError("connection reset"), "exception: OSError: connection reset"),
        (asyncio.CancelledError(), "exception: CancelledError: "),
        (SystemExit(3), "exception: SystemExit: 3"),
        (MuteError(), "exception: MuteError: (its text could not be read: ValueError)"),
        (RuntimeError("x" * 10_000), "exception: RuntimeError: xxx"),
    ],
)
def test_an_exception_is_an_info(error: BaseException, expected: str) -> None:
    """Its text is cut, and the run continues."""

    async def behave(_: int) -> Outcome:
        raise error

    result, ops = run(limit(2, WRITE), Service(behave))
    assert result.unknown == 2
    assert ops[1].type is OpType.INFO
    assert ops[1].value == 1
    assert (ops[1].error or "").startswith(expected)
    assert len(ops[1].error or "") <= MAX_ERROR_CHARACTERS


@pytest.mark.parametrize("outcome", [None, 42, Fail(error=None), Info(error=3), (OpType.OK, 3)])  # type: ignore[arg-type]
def test_an_answer_that_is_no_outcome_is_an_info(outcome: Any) -> None:
    """The outcome of the operation is unknown."""

    async def behave(_: int) -> Any:
        return outcome

    result, ops = run(limit(1, WRITE), Service(behave))
    assert result.unknown == 1
    assert "which is not an outcome" in (ops[1].error or "")


def test_a_result_that_json_cannot_represent_is_an_info(tmp_path: Any) -> None:
    """It cannot be recorded, so it cannot be judged."""
    from harness.history import HistoryWriter  # noqa: PLC0415 - the one test that needs a file

    async def behave(_: int) -> Outcome:
        return Ok({1, 2})

    writer = HistoryWriter(tmp_path / "history.jsonl", {})
    result, ops = run(limit(2, WRITE), Service(behave), history=writer)
    writer.close()
    assert result.unknown == 2
    assert [op.type for op in ops] == [OpType.INVOKE, OpType.INFO] * 2
    assert "that JSON can represent" in (ops[1].error or "")
    assert [op.process for op in ops] == [0, 0, 1, 1]


def test_a_client_that_cannot_be_made_is_a_fail() -> None:
    """Without a client no request was sent, so the operation certainly did not happen."""

    def broken(process: int, node: Node) -> Any:
        raise ValueError(f"no route for {process}")

    result, ops = run(limit(2, READ), broken)
    assert result.failed == 2
    assert ops[1].error == "no-client: ValueError: no route for 0"


def test_a_hung_client_is_abandoned_at_its_time_out() -> None:
    """The operation is an info at the deadline, the client is closed, and another process takes the seat."""
    service = Service(lambda process: hang(process) if process == 0 else answer_at_once(process))
    result, ops = run(limit(2, READ), service, timeout_s=0.5)
    assert [(op.type, op.process, op.error) for op in ops] == [
        (OpType.INVOKE, 0, None),
        (OpType.INFO, 0, "timeout"),
        (OpType.INVOKE, 1, None),
        (OpType.OK, 1, None),
    ]
    assert 500_000_000 <= ops[1].time_ns < 500_001_000
    assert (result.timeouts, result.unknown) == (1, 1)
    assert sorted(service.closed) == [0, 1]


def test_a_client_that_ignores_its_cancellation_is_not_waited_for() -> None:
    """Its late answer has no effect, and its process never works again."""

    async def behave(process: int) -> Outcome:
        if process == 0:
            ends_s = asyncio.get_running_loop().time() + 3
            while (left_s := ends_s - asyncio.get_running_loop().time()) > 0:
                try:
                    await asyncio.sleep(left_s)
                except asyncio.CancelledError:
                    continue
            return Ok("too late")
        await asyncio.sleep(0.5)
        return Ok()

    result, ops = run(limit(10, READ), Service(behave))
    assert [op.value for op in ops if op.type is OpType.OK] == [None] * 9
    assert [op.process for op in ops if op.type is OpType.INVOKE] == [0] + [1] * 9
    assert len(pair(ops)) == result.operations == 10


@pytest.mark.parametrize("where", ["invoke", "close"])
def test_a_client_that_ignores_every_cancellation_does_not_block_the_loop(where: str) -> None:
    """After the drive, no task keeps the loop from its end, as in `asyncio.run`."""

    async def immortal(_: int = 0) -> Any:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(10**6)

    service = Service(immortal if where == "invoke" else answer_at_once, immortal if where == "close" else None)

    async def main() -> set[Any]:
        await drive(
            generator=limit(1, READ),
            clients=service,
            nodes=NODES,
            load=ClosedLoop(concurrency=1),
            seed=1,
            clock=Clock(asyncio.get_running_loop()),
            history=MemoryHistory(),
            timeout_s=1,
            stop=asyncio.Event(),
        )
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        return (await asyncio.wait(left, timeout=1))[1] if left else set()

    assert run_virtual(main()) == set()


@pytest.mark.parametrize("how", ["raises", "hangs", "is cancelled"])
def test_a_client_that_cannot_be_closed_is_counted(how: str) -> None:
    """The run waits for it for a bounded time, and counts it."""

    async def close() -> None:
        if how == "raises":
            raise OSError("already gone")
        if how == "is cancelled":
            raise asyncio.CancelledError
        await asyncio.sleep(10**6)

    async def main() -> tuple[DriveResult, float]:
        loop = asyncio.get_running_loop()
        result = await drive(
            generator=limit(2, READ),
            clients=Service(answer_at_once, close),
            nodes=NODES,
            load=ClosedLoop(concurrency=2),
            seed=1,
            clock=Clock(loop),
            history=MemoryHistory(),
            timeout_s=1,
            stop=asyncio.Event(),
        )
        return result, loop.time()

    result, ended_s = run_virtual(main())
    assert result.close_errors == 2
    assert ended_s <= 2 * CLOSE_TIMEOUT_S


def test_a_client_that_never_suspends_does_not_starve_the_others() -> None:
    """Other workers have turns even if answers take no time."""
    _, ops = run(time_limit(0.001, limit(3000, READ)), Service(answer_at_once), load=ClosedLoop(concurrency=3))
    assert Counter(op.process for op in ops) == {0: 2000, 1: 2000, 2: 2000}


def test_stopping_ends_a_wait_at_once() -> None:
    """Workers that wait for a time or an event end."""
    for waiting in (Later(10**15), Later(10**15, or_event=True)):
        result, ops = run(limit(MANY, functools.partial(_always, waiting)), Service(answer_at_once), stop_s=3)
        assert (result.operations, ops) == (0, [])


def _always(answer: Later, _: Asker) -> Later:
    return answer


def test_stopping_lets_operations_in_flight_end() -> None:
    """No new operation starts, and an answer within the grace time is recorded."""

    async def behave(_: int) -> Outcome:
        await asyncio.sleep(STOP_GRACE_S * 0.9)
        return Ok()

    result, ops = run(limit(MANY, READ), Service(behave), timeout_s=60, stop_s=0.001)
    assert [op.type for op in ops] == [OpType.INVOKE, OpType.OK]
    assert result.ok == 1


def test_stopping_does_not_wait_for_a_hung_client() -> None:
    """After the grace time, the operation is an info with the reason."""
    result, ops = run(limit(MANY, READ), Service(hang), timeout_s=60, stop_s=1)
    assert [op.type for op in ops] == [OpType.INVOKE, OpType.INFO]
    assert (ops[1].error or "").startswith("interrupted")
    assert ops[1].time_ns / 1e9 == pytest.approx(1 + STOP_GRACE_S, abs=0.01)
    assert (result.unknown, result.timeouts) == (1, 0)


def test_a_drive_that_is_stopped_before_it_begins_does_nothing() -> None:
    """It has no operation."""

    async def main() -> tuple[DriveResult, list[Op]]:
        stop = asyncio.Event()
        stop.set()
        history = MemoryHistory()
        result = await drive(
            generator=limit(MANY, READ),
            clients=Service(answer_at_once),
            nodes=NODES,
            load=ClosedLoop(concurrency=2),
            seed=1,
            clock=Clock(asyncio.get_running_loop()),
            history=history,
            timeout_s=1,
            stop=stop,
            first_process=4,
        )
        return result, history.ops

    result, ops = run_virtual(main())
    assert (result.operations, result.next_process, ops) == (0, 4, [])


def test_a_generator_that_waits_for_ever_is_an_error() -> None:
    """Otherwise the run would hang."""
    with pytest.raises(GeneratorStuck, match="lets all 2 workers wait"):
        run(limit(MANY, lambda _: Later()), Service(answer_at_once), load=ClosedLoop(concurrency=2))


def test_an_event_of_any_worker_ends_a_wait() -> None:
    """A waiting worker asks again after an invoke and a completion of another one."""
    asked: list[int] = []

    def generate(asker: Asker) -> Any:
        if asker.worker == 0:
            return READ if asker.now_ns == 0 else None
        asked.append(asker.now_ns)
        return Later() if asker.now_ns < 100_000_000 else None

    run(limit(MANY, generate), Service(answer_slowly), load=ClosedLoop(concurrency=2))
    assert asked == [0, 100_000_000]


def test_a_generator_s_own_error_ends_the_drive() -> None:
    """The drive raises it, the events so far stay, and the clients are closed."""
    service = Service(answer_at_once)
    history = MemoryHistory()

    def generate(asker: Asker) -> Any:
        if asker.now_ns == 0 and len(history.ops) < 4:
            return READ
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(limit(MANY, generate), service, history=history)
    assert len(history.ops) == 4
    assert service.closed == [0]


def test_a_generator_s_value_that_json_cannot_represent_ends_the_drive(tmp_path: Any) -> None:
    """It is an error of the workload, and no request is sent."""
    from harness.history import HistoryWriter  # noqa: PLC0415 - the one test that needs a file

    service = Service(answer_at_once)
    with pytest.raises(InputError, match="that JSON can represent"):
        run(limit(1, Invocation("write", {1})), service, history=HistoryWriter(tmp_path / "h.jsonl", {}))
    assert service.opened == []


class FullHistory(MemoryHistory):
    """A history that takes four events."""

    def append(self, **event: Any) -> Op:
        """Records an event; raises after four."""
        if len(self.ops) == 4:
            raise InfrastructureError("the disk is full")
        return super().append(**event)


@pytest.mark.parametrize("behave", [answer_slowly, hang])
def test_a_history_that_cannot_be_written_ends_the_drive(behave: Any) -> None:
    """An operation must be recorded before it is performed. The error also reaches the run from a time-out."""
    service = Service(behave)
    with pytest.raises(InfrastructureError, match="the disk is full"):
        run(limit(MANY, READ), service, history=FullHistory())
    assert set(service.closed) == set(service.opened)


def test_cancelling_a_drive_cancels_its_operations() -> None:
    """No task is left, and the clients are closed."""
    service = Service(hang)

    async def main() -> int:
        task = asyncio.create_task(
            drive(
                generator=limit(MANY, READ),
                clients=service,
                nodes=NODES,
                load=ClosedLoop(concurrency=3),
                seed=1,
                clock=Clock(asyncio.get_running_loop()),
                history=MemoryHistory(),
                timeout_s=60,
                stop=asyncio.Event(),
            )
        )
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    assert run_virtual(main()) == 1
    assert sorted(service.closed) == [0, 1, 2]


def test_the_generator_receives_every_event() -> None:
    """It receives invokes and completions, in the order of the history."""
    received: list[Op] = []

    class Listener:
        """A generator that records its events."""

        def __init__(self) -> None:
            self._child = limit(5, READ)

        def ask(self, asker: Asker) -> Any:
            """Asks the child."""
            return self._child.ask(asker)

        def update(self, event: Op) -> None:
            """Records the event."""
            received.append(event)

    _, ops = run(Listener(), Service(answer_slowly), load=ClosedLoop(concurrency=2))
    assert received == ops


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_every_history_is_well_formed(data: st.DataObject) -> None:
    """With random loads and clients: consecutive indexes, ascending times, valid processes, and an end of each operation."""
    loads: list[Load] = [
        ClosedLoop(concurrency=4),
        OpenLoop(rate_per_node=40, max_in_flight=3, processes_per_node=1),
    ]
    load = data.draw(st.sampled_from(loads))
    seed = data.draw(st.integers(0, 2**32))
    draws = stream(seed, "service")

    def respond(_: int, invocation: Invocation) -> Outcome:
        kind = draws.choice(["ok", "ok", "fail", "info", "raise"])
        if kind == "raise":
            raise OSError("reset")
        outcomes: dict[str, Outcome] = {"ok": Ok(invocation.value), "fail": Fail("no"), "info": Info("perhaps")}
        return outcomes[kind]

    ops = simulate(
        phases(limit(40, WRITE), limit(20, stagger(0.01, READ, seed=seed))),
        load=load,
        latency_s=lambda _, __: draws.choice([0.0, 0.01, 0.1, 10.0]),
        respond=respond,
        timeout_s=0.5,
        seed=seed,
    )
    assert [op.index for op in ops] == list(range(len(ops)))
    assert all(before.time_ns <= after.time_ns for before, after in itertools.pairwise(ops))
    operations = pair(ops)
    assert all(operation.end_ns is not None for operation in operations)
    assert all(operation.end_ns - operation.start_ns <= 500_001_000 for operation in operations if operation.end_ns)
    assert len(operations) == 60


def test_a_simulation_is_the_same_every_time() -> None:
    """In virtual time, the seed determines the whole run."""

    def once() -> list[Op]:
        return simulate(limit(200, READ), load=OpenLoop(rate_per_node=30), seed=4)

    assert once() == once()
