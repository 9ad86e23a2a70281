"""What a run does between the healing and the collection of logs: it waits for recovery, reads finally, compares replicas.

Clients go on with the workload until they are served; see `harness.recovery`. The final reads then go through each node that
answers, also if the system has not recovered, since only a read shows a loss. A node that stays out gets a few reads, and is
left out if it answers none.
"""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from harness import phases as ph
from harness.combinators import on_update, time_limit
from harness.final_reads import read_nodes
from harness.interpreter import drive
from harness.load import ClosedLoop, OpenLoop
from harness.op import RECOVERY_PHASE, Invocation, OpType
from harness.recovery import recover
from harness.replicas import compare_replicas
from harness.served import READ, Served, sorts_in
from harness.units import NS_PER_S
from harness.workload import clients_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractContextManager

    from harness.client import Client, ClientFactory
    from harness.clock import Clock
    from harness.generator import Answer, Asker, Generator
    from harness.history import Recorder
    from harness.load import Load
    from harness.node import Node
    from harness.op import Op, Process
    from harness.phases import Phases
    from harness.recovery import Recovery
    from harness.run import Observer, RunResult
    from harness.test import Test

FINAL_CONCURRENCY: Final = 5
# Answers from before this time at the end of the workload do not show that clients are served now.
RECENT_S: Final = 1.0
ASK_RATE: Final = 10.0  # operations per second and node of an open loop, at most
READ_AFTER: Final = 20  # operations of the workload without a read, after which the wait for recovery reads
GIVE_UP: Final = 5  # reads without an answer, after which a node that stays out is left out


@dataclass(slots=True, kw_only=True)
class Aftermath:
    """The stages of one run after its healing.

    Attributes:
        test: The test.
        result: The outcome so far; it is filled.
        generator: The generator of the workload, without its time limit.
        history: Records the operations.
        observer: Shows the progress.
        phases: Measures the phases.
        clock: The run's clock.
        stop: Set when the run is interrupted.
        next_process: The lowest process number that was never used.
        paced: Measures the control node during the wait for recovery.
        recorded: Is called when no operation follows any more; None: nobody waits for it.
        problem: Is called for an error that does not end the run.
    """

    test: Test
    result: RunResult
    generator: Generator
    history: Recorder
    observer: Observer
    phases: Phases
    clock: Clock
    stop: asyncio.Event
    next_process: int
    paced: Callable[[], AbstractContextManager[None]]
    recorded: Callable[[RunResult], None] | None
    problem: Callable[[str], None]

    async def observe(self) -> None:
        """Carries out all stages. An interruption ends them early."""
        test, result = self.test, self.result
        self.observer.phase("waiting for recovery")
        with self.phases.during(ph.RECOVER), self.paced():
            recovery = result.recovery = await recover(
                test.system,
                tuple(test.cluster.nodes),
                clients=_Clients(self),
                timeout_s=test.recovery_timeout_s,
                clock=self.clock,
                damaged={
                    name for fault in result.faults if fault.planned.kind in test.damaging for name in fault.targets
                },
            )
        if test.final_reads:
            await self._read_finally(recovery)
        if self.recorded is not None and not self.stop.is_set():
            self.recorded(result)
        front = test.system.front()
        if recovery.error is None and front.dumps_replicas and not self.stop.is_set():
            self.observer.phase("comparing replicas")
            with self.phases.during(ph.COMPARE):
                result.replicas = await compare_replicas(front, clock=self.clock, without=recovery.out)

    async def _read_finally(self, recovery: Recovery) -> None:
        front = self.test.system.front()
        if front.quiet_s and not self.stop.is_set():
            self.observer.phase(f"quiet for {front.quiet_s:g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), front.quiet_s)
        self.observer.phase("final reads")
        doubtful = {node.name for node in front.nodes if recovery.error is not None or node.name in recovery.out}

        async def read(node: Node) -> str | None:
            return await self._read_through(node, doubtful=node.name in doubtful)

        reads = read_nodes(
            front,
            read=read,
            stop=self.stop,
            lead_timeout_s=self.test.lead_timeout_s,
            phases=self.phases,
            out=recovery.out,
            moves=recovery.error is None,
        )
        async for self.result.final_reads in reads:
            pass
        if front.moves_leadership and self.result.final_reads is not None and not self.stop.is_set():
            for name, why in self.result.final_reads.left_out.items():
                self.problem(f"{name} {why}; its final reads are left out")

    async def _read_through(self, node: Node, *, doubtful: bool) -> str | None:
        """Reads every key through a node; returns why it is left out, or None."""
        test = self.test
        self.observer.phase(f"final reads through {node.name}")

        def pinned(process: int, node: Node) -> Client:
            return test.system.client(process, node, pinned=True)

        answered = failed = 0
        async with _stopping(self.stop) as enough:

            def count(event: Op) -> None:
                nonlocal answered, failed
                answered += event.type is OpType.OK
                failed += event.type in {OpType.FAIL, OpType.INFO}
                if doubtful and not answered and failed >= GIVE_UP:
                    enough.set()

            generator = test.workload.final_generator(history=self.history.ops, node=node)
            await self.drive(
                generator=on_update(count, time_limit(test.final_reads_timeout_s, generator)),
                clients=pinned,
                nodes=(node,),
                load=ClosedLoop(concurrency=FINAL_CONCURRENCY),
                stop=enough,
            )
        return f"answered none of {failed} reads" if doubtful and failed and not answered else None

    async def drive(
        self,
        *,
        generator: Generator,
        clients: ClientFactory,
        nodes: Sequence[Node],
        load: Load,
        stop: asyncio.Event,
    ) -> None:
        """Drives clients into the history of the run, with processes that it never used; see `harness.interpreter.drive`."""
        driven = await drive(
            generator=generator,
            clients=clients,
            nodes=nodes,
            load=load,
            seed=self.test.seed,
            clock=self.clock,
            history=self.history,
            timeout_s=self.test.operation_timeout_s,
            stop=stop,
            first_process=self.next_process,
        )
        self.next_process = driven.next_process


class _Clients:
    """The clients of a run after healing; see `harness.recovery.Clients`.

    Attributes:
        worked: Whether a client got an answer during the workload.
    """

    def __init__(self, run: Aftermath) -> None:
        self._run = run
        test = run.test
        front = test.system.front()
        # A closed loop can have fewer workers than nodes.
        nodes = [node.name for node in front.nodes]
        load = test.load
        self._nodes = nodes[: load.concurrency] if isinstance(load, ClosedLoop) else nodes
        self._quorum = min(front.quorum(), len(self._nodes))
        self._reads = frozenset(getattr(test.workload, "final", ()))
        self._codes = frozenset({*test.system.answers, *test.system.refusals})
        ends_ns = [fault.end_ns for fault in run.result.faults]
        self._healed_ns = max(ends_ns, default=None)
        self.worked = bool(self._since(0).answering)

    @property
    def healed_s(self) -> float | None:
        """Returns when the last fault was healed; None if there was no fault."""
        return None if self._healed_ns is None else self._healed_ns / NS_PER_S

    def unasked(self) -> Served:
        """Returns that nothing is shown yet."""
        return Served(
            nodes=self._nodes,
            quorum=self._quorum,
            reads=self._reads,
            codes=self._codes,
            sorts=sorts_in(self._run.history.ops, self._reads),
        )

    def so_far(self) -> Served:
        """Returns what the answers since the last healing show, if those of the last seconds show the same."""
        recent_ns = round((self._run.result.workload_s - RECENT_S) * NS_PER_S)
        healed_ns = self._healed_ns or 0
        if self._since(max(recent_ns, healed_ns)).met_ns is None:
            return self.unasked()
        return self._since(healed_ns)

    def _since(self, begin_ns: int) -> Served:
        served, events = self.unasked(), self._run.history.ops
        for event in islice(events, bisect_left(events, begin_ns, key=attrgetter("time_ns")), None):
            served.update(event)
        return served

    async def ask(self, timeout_s: float) -> Served:
        """Lets clients go on with the workload until they are served, or the time is over."""
        run, served = self._run, self.unasked()
        if run.stop.is_set():
            return served
        run.observer.phase("waiting until clients are served")
        async with _stopping(run.stop) as enough:

            def update(event: Op) -> None:
                served.update(event)
                if served.met_ns is not None:
                    enough.set()

            test = run.test
            await run.drive(
                generator=on_update(update, time_limit(timeout_s, _Continued(run.generator, served, self._a_read()))),
                clients=clients_of(test.workload, test.system.client),
                nodes=test.system.front().nodes,
                load=_slower(test.load),
                stop=enough,
            )
        return served

    def _a_read(self) -> Invocation | None:
        """Returns the last read that succeeded; None if none did."""
        begun: dict[Process, Op] = {}
        read = None
        for event in self._run.history.ops:
            if event.f not in self._reads:
                continue
            if event.type is OpType.INVOKE:
                begun[event.process] = event
            elif event.type is OpType.OK and event.process in begun:
                read = begun[event.process]
        return None if read is None else Invocation(read.f, read.value, read.key)


class _Continued:
    """The generator of the workload after its time limit. Its operations have a phase of their own.

    A workload may read seldom. Then the wait would be over without a read, and the system would be accused of that. So while no
    read has succeeded, one is repeated after some operations without any.
    """

    def __init__(self, generator: Generator, served: Served, read: Invocation | None) -> None:
        self._generator = generator
        self._served = served
        self._read = read
        self._without = 0  # operations since the last read

    def ask(self, asker: Asker) -> Answer:
        """Returns what the workload answers, or the repeated read."""
        if self._read is not None and self._without >= READ_AFTER and READ not in self._served.succeeded:
            self._without = 0
            return self._read._replace(phase=RECOVERY_PHASE)
        answer = self._generator.ask(asker)
        if not isinstance(answer, Invocation):
            return answer
        self._without = 0 if answer.f in self._served.reads else self._without + 1
        return answer if answer.phase is not None else answer._replace(phase=RECOVERY_PHASE)

    def update(self, event: Op) -> None:
        """Hands an event to the workload."""
        self._generator.update(event)


def _slower(load: Load) -> Load:
    """Returns a load that shows whether clients are served, and is no burden while they are not."""
    if isinstance(load, ClosedLoop):
        return load
    return OpenLoop(
        rate_per_node=min(load.rate_per_node, ASK_RATE),
        max_in_flight=load.max_in_flight,
        processes_per_node=load.processes_per_node,
    )


@contextlib.asynccontextmanager
async def _stopping(stop: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Yields an event that is set as soon as `stop` is."""
    also = asyncio.Event()

    async def follow() -> None:
        await stop.wait()
        also.set()

    following = asyncio.create_task(follow())
    try:
        yield also
    finally:
        following.cancel()
