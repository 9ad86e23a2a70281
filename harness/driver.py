"""The code that closed and open loops share: it performs one operation for one process, whatever the client does.

Invariants:

- The time of an invoke is taken before the client is called, and the time of a completion after its answer.
- No client can stop the run, but for an `InputError` at its construction: then the options allow no client at all. An
  exception is an `info`, and so is an answer that is no outcome, or that JSON cannot represent.
- A client that does not answer in time is abandoned: its operation is an `info`, and its task is cancelled without a wait.
- After an `info`, the process never works again. Its client is closed, and another process takes its seat.

Only a client that blocks the event loop itself can break this.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.blame import OURS, files_of, place_in, without_exit
from harness.client import via_of
from harness.errors import InputError
from harness.generator import Asker
from harness.op import Fail, Info, Invocation, Ok, OpType
from harness.returns import called_by_kind, place_of
from harness.tasks import ended
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from harness.client import Client, ClientFactory
    from harness.clock import Clock
    from harness.generator import Answer, Generator
    from harness.history import Recorder
    from harness.node import Node
    from harness.op import Outcome, Value

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 1.0
GRACE_S = 0.5
MAX_ERROR_CHARACTERS = 500
TIMEOUT = "timeout"
INTERRUPTED = "interrupted: the run was stopped before the answer arrived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The arguments of a drive; see `harness.interpreter.drive`."""

    generator: Generator
    clients: ClientFactory
    nodes: Sequence[Node]
    seed: int
    clock: Clock
    history: Recorder
    timeout_s: float
    first_process: int


class Seat:
    """A place at one node, where one process works after the other.

    Attributes:
        worker: The number of its op stream.
        node: Its node.
        process: The process that works here now.
        client: The process' client; None until its first operation.
        turn: The number of operations so far; a task with an older turn has been abandoned.
        invocation: The operation in flight; None if there is none.
        task: The task that performs it.
    """

    __slots__ = ("client", "invocation", "node", "process", "task", "turn", "worker")

    def __init__(self, *, worker: int, node: Node, process: int) -> None:
        self.worker = worker
        self.node = node
        self.process = process
        self.client: Client | None = None
        self.turn = 0
        self.invocation: Invocation | None = None
        self.task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Counts:
    """The counts of a drive; see `harness.interpreter.DriveResult`."""

    ok: int = 0
    failed: int = 0
    unknown: int = 0
    shed: int = 0
    unused: int = 0
    timeouts: int = 0
    close_errors: int = 0


class Driver(ABC):
    """Performs operations. The two loops choose the operations, and what a free seat does next.

    Attributes:
        counts: The operations so far, by result.
        done: A future that resolves at the end, or with the exception that ended the drive.
        next_process: The lowest process number that was never used.
    """

    def __init__(self, setting: Setting) -> None:
        self.counts = Counts()
        self.next_process = setting.first_process
        self._setting = setting
        self._generator = setting.generator
        self._clock = setting.clock
        self._history = setting.history
        self._timeout_ns = round(setting.timeout_s * NS_PER_S)
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._halted = False
        self._seats: list[Seat] = []
        self._workers: frozenset[int] = frozenset()
        # In the order of their deadlines, because all operations have the same time-out.
        self._deadlines: OrderedDict[Seat, int] = OrderedDict()
        self._watchdog: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # For each client that is being closed: the driver's task, and the client's own.
        self._closing: set[asyncio.Task[None]] = set()

    @abstractmethod
    def start(self) -> None:
        """Starts asking the generator."""

    @abstractmethod
    def halt(self) -> None:
        """Stops new invokes; operations in flight continue."""

    @abstractmethod
    def _successor(self, seat: Seat) -> int:
        """Returns the number of the process that takes a seat after an `info`."""

    @abstractmethod
    def _vacated(self, seat: Seat) -> None:
        """Is called when a seat's operation was abandoned and its next process took the seat."""

    @abstractmethod
    def _noticed(self) -> None:
        """Is called after each recorded event."""

    def interrupt(self) -> None:
        """Abandons all operations in flight."""
        for seat in list(self._deadlines):
            self._abandon(seat, INTERRUPTED)

    async def close(self) -> None:
        """Cancels all tasks and closes all clients, in a bounded time."""
        self.done.cancel()
        if self._watchdog is not None:
            self._watchdog.cancel()
        for task in self._tasks:
            task.cancel()
        for seat in self._seats:
            self._dismiss(seat)
        await ended(self._tasks | self._closing, CLOSE_TIMEOUT_S + GRACE_S)
        await ended(self._tasks | self._closing, 0.0)  # those that began meanwhile

    def _fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _ask(self, seat: Seat, now_ns: int) -> Answer:
        return self._generator.ask(Asker(seat.worker, seat.process, seat.node.name, now_ns, self._workers))

    def _new_seat(self, worker: int, node: Node) -> Seat:
        seat = Seat(worker=worker, node=node, process=self.next_process)
        self.next_process += 1
        self._seats.append(seat)
        return seat

    def _begin(self, seat: Seat, invocation: Invocation, now_ns: int) -> None:
        """Records the invoke; must be called before the client."""
        self._record(seat, invocation, now_ns, op_type=OpType.INVOKE, value=invocation.value)
        seat.invocation = invocation
        seat.turn += 1
        self._deadlines[seat] = deadline_ns = now_ns + self._timeout_ns
        if self._watchdog is None:
            self._watch_until(deadline_ns, now_ns)

    async def _perform(self, seat: Seat) -> bool:
        """Performs the operation that `_begin` recorded.

        Returns:
            Whether the caller still owns the seat; False if the operation was abandoned.
        """
        invocation, turn = seat.invocation, seat.turn
        assert invocation is not None  # noqa: S101 - `_begin` came before
        outcome: Outcome
        try:
            client = seat.client or self._setting.clients(seat.process, seat.node)
        except InputError:
            raise  # the options allow no client, so no operation can ever be sent
        except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001 - no client can stop the run
            outcome = Fail(
                _described("no-client", error, self._setting.clients)
            )  # without a client, no request was sent
        else:
            seat.client = client
            outcome = await _answer(client, invocation)
        if seat.turn != turn:
            return False
        self._complete(seat, invocation, outcome)
        return True

    def _complete(self, seat: Seat, invocation: Invocation, outcome: Outcome) -> None:
        now_ns = self._clock.now_ns()
        del self._deadlines[seat]
        seat.invocation = None
        op_type, value, error = _typed(invocation, outcome)
        order = outcome.order if isinstance(outcome, Ok) else None
        try:
            self._record(seat, invocation, now_ns, op_type=op_type, value=value, error=error, order=order)
        except InputError as refused:
            op_type = OpType.INFO
            error = _described("exception", refused)
            self._record(seat, invocation, now_ns, op_type=op_type, value=invocation.value, error=error)
        if op_type is OpType.OK:
            self.counts.ok += 1
        elif op_type is OpType.FAIL:
            self.counts.failed += 1
        else:
            self.counts.unknown += 1
            self._replace_process(seat)

    def _record(
        self,
        seat: Seat,
        invocation: Invocation,
        now_ns: int,
        *,
        op_type: OpType,
        value: Value,
        error: str | None = None,
        order: int | None = None,
    ) -> None:
        event = self._history.append(
            time_ns=now_ns,
            op_type=op_type,
            process=seat.process,
            f=invocation.f,
            value=value,
            key=invocation.key,
            node=seat.node.name,
            error=error,
            scheduled_ns=invocation.scheduled_ns,
            phase=invocation.phase,
            via=None if op_type is OpType.INVOKE else via_of(seat.client),
            order=order,
        )
        self._generator.update(event)
        self._noticed()

    def _abandon(self, seat: Seat, error: str) -> None:
        """Ends a seat's operation without its client."""
        invocation, task = seat.invocation, seat.task
        assert invocation is not None  # noqa: S101 - only what is in flight has a deadline
        seat.turn += 1
        seat.task = None
        if task is not None:
            task.cancel()
        self._complete(seat, invocation, Info(error))
        self._vacated(seat)

    def _replace_process(self, seat: Seat) -> None:
        self._dismiss(seat)
        seat.process = self._successor(seat)
        self.next_process = max(self.next_process, seat.process + 1)

    def _dismiss(self, seat: Seat) -> None:
        client, seat.client = seat.client, None
        if client is not None:
            self._begin_closing(self._close_client(client))

    def _begin_closing(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _close_client(self, client: Client) -> None:
        # Not wait_for: it would wait for a `close` that ignores its cancellation.
        closing = self._begin_closing(without_exit(client.close()))
        await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT_S)
        if not closing.done():
            closing.cancel()
            self._close_failed(client, f"it took longer than {CLOSE_TIMEOUT_S:g} s")
        elif closing.cancelled():
            self._close_failed(client, "it was cancelled")
        elif (error := closing.exception()) is not None:
            self._close_failed(client, _described(type(error).__name__, error, client))

    def _close_failed(self, client: Client, how: str) -> None:
        self.counts.close_errors += 1
        logger.warning("closing a client of %s failed: %s", client.node.name, how)

    def _watch_until(self, deadline_ns: int, now_ns: int) -> None:
        # One nanosecond more, so that rounding never wakes the watchdog too early.
        self._watchdog = self._loop.call_later((deadline_ns - now_ns + 1) / NS_PER_S, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._watchdog = None
        now_ns = self._clock.now_ns()
        while self._deadlines:
            seat, deadline_ns = next(iter(self._deadlines.items()))
            if deadline_ns > now_ns:
                if self._watchdog is None:
                    self._watch_until(deadline_ns, now_ns)
                return
            self.counts.timeouts += 1
            try:
                self._abandon(seat, TIMEOUT)
            except Exception as error:  # noqa: BLE001 - the caller of the drive gets it
                self._fail(error)
                return


async def _answer(client: Client, invocation: Invocation) -> Outcome:
    try:
        outcome = await client.invoke(invocation)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Info(_described("exception", error, client))  # the client cancelled itself
    except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001 - no client can stop the run
        return Info(_described("exception", error, client))
    if not isinstance(outcome, Ok | Fail | Info) or (
        not isinstance(outcome, Ok) and not isinstance(outcome.error, str)
    ):
        return Info(_no_outcome(client, outcome))
    return outcome


def _no_outcome(client: Client, outcome: object) -> str:
    """Returns the error of an operation whose client answered with something else."""
    where = place_of("invoke", getattr(type(client), "invoke", None))
    error = f" with the error {called_by_kind(outcome.error)}" if isinstance(outcome, Fail | Info) else ""
    what = f"{called_by_kind(outcome)}{error}"
    return f"exception: TypeError: {where} returned {what}, which is not an outcome; expected Ok, Fail or Info of harness.op"


def _typed(invocation: Invocation, outcome: Outcome) -> tuple[OpType, Value, str | None]:
    if isinstance(outcome, Ok):
        return OpType.OK, outcome.value, None
    kind = OpType.FAIL if isinstance(outcome, Fail) else OpType.INFO
    return kind, invocation.value, outcome.error[:MAX_ERROR_CHARACTERS]


def _described(code: str, error: BaseException, foreign: object = None) -> str:
    """Returns the error of an operation.

    Args:
        code: Its code.
        error: The exception.
        foreign: The client, or the bound method that makes clients: if it is from a plug-in, the error has the place.
    """
    try:
        text = str(error)
    except Exception as worse:  # noqa: BLE001 - even the text of an exception may raise one
        text = f"(its text could not be read: {type(worse).__name__})"
    location = None if foreign is None else place_in(error, files_of(type(getattr(foreign, "__self__", foreign)), OURS))
    return f"{code}: {type(error).__name__}: {text}"[:MAX_ERROR_CHARACTERS] + (f", in {location}" if location else "")
