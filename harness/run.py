"""Carries out one run of a test, from bare nodes to a recorded history.

The phases are:

1. Heal faults of earlier runs, install, start.
2. Run the workload and the faults at the same time.
3. Heal, wait for recovery, read every key through each node, and compare the replicas.
4. Collect the logs, and stop the system.

`harness.phases` measures each of them. After the last operation, the caller can judge the operations while the run goes on.

The watch polls the nodes from the start of the workload until the comparison of the replicas. After an interruption, an error,
or the loss of a node, the run still heals, collects the logs, and stops, and the history so far can be judged. This module
depends only on the protocols of systems, faults and workloads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, cast

from harness import phases as ph
from harness import readiness
from harness.aftermath import Aftermath
from harness.blame import without_exit
from harness.children import Left
from harness.clock import Clock, in_virtual_time
from harness.cluster import on_all, on_nodes
from harness.combinators import time_limit
from harness.console.plain import counted
from harness.daemon import preloads
from harness.errors import InterruptedEarly, LabrysError, described
from harness.final_reads import FinalReads
from harness.indexes import Indexes
from harness.interpreter import drive
from harness.interruptions import stopping
from harness.node_clocks import RIGHT, Clocks, as_logged, read_clocks
from harness.pace import RECOVERY, WORKLOAD, Pace, Pacer
from harness.phases import Phases
from harness.schedule import conduct
from harness.slowness import slowed
from harness.switch import SwitchEnded, switch_of
from harness.take_down import TakeDown
from harness.tasks import ended
from harness.units import NS_PER_S
from harness.watch import Positions, Sighting, Watch
from harness.workload import clients_of
from harness.world import world_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from harness.ends import Ended
    from harness.faults import FaultRecord
    from harness.history import Recorder
    from harness.node import Node
    from harness.node_clocks import NodeClock
    from harness.recovery import Recovery
    from harness.replicas import Replicas
    from harness.switch import ConnectionNote
    from harness.test import Test
    from harness.world import Execution, ProgramWorld

    Recorded = Callable[["RunResult"], None]

logger = logging.getLogger(__name__)

HEAL_TIMEOUT_S = 60.0
GRACE_S = 1.0  # for a cancelled task of foreign code
STAGE_GRACE_S = 5.0  # for the stages after the workload, to end by themselves after an interruption


@dataclass(slots=True, kw_only=True)
class RunResult:
    """The outcome of a run beside its history. It is filled during the run, so that it is right even if the run breaks off.

    Attributes:
        faults: The record of each fault that began.
        sightings: The reports of the nodes about the service that clients use, until the comparison of the replicas.
        other_sightings: Their reports about other leaders, by service and group; see `harness.watch.Watch`.
        positions: The applied indexes of the nodes in the same time.
        indexes: Their reports that break a rule of Raft.
        recovery: The recovery; None if the run ended before.
        replicas: The comparison of the replicas; None if the run ended before, or the system does not dump replicas.
        final_reads: The results of the final reads; None if the test has none.
        shed: Arrivals of an open loop without an operation, because their node had its maximum in flight.
        logs: Node to the collected log files.
        ended: The ends of processes since the start of the workload that Labrys did not end.
        problems: Errors that do not break the run off, e.g. a log that could not be collected.
        interrupted: Whether a signal ended the workload early.
        error: The error that broke the run off; None if there is none.
        ready_s: The time from the start of the run until the system served; None if the run ended before.
        world_s: The time of the world at the start of the workload; None if it did not begin, or on real nodes.
        connections: What happened to connections between nodes up to the healing; None: no switch carried their packets.
        execution: What the programs of a world did until the logs were collected; None if there are none.
        workload_s: The duration of the workload.
        clocks: The clocks of the nodes at the start of the workload; None if it did not begin, or in virtual time.
        paces: The measurements of the control node in the stages `workload` and `recovery`; none in virtual time.
    """

    faults: list[FaultRecord] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    other_sightings: Mapping[str, Sequence[Sighting]] = field(default_factory=dict)
    positions: Positions = field(default_factory=Positions)
    indexes: Indexes = field(default_factory=Indexes)
    recovery: Recovery | None = None
    replicas: Replicas | None = None
    final_reads: FinalReads | None = None
    shed: int = 0
    logs: dict[str, list[Path]] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    interrupted: bool = False
    error: str | None = None
    ready_s: float | None = None
    world_s: float | None = None
    connections: list[ConnectionNote] | None = None
    execution: Execution | None = None
    workload_s: float = 0.0
    clocks: Clocks | None = None
    paces: dict[str, Pace] = field(default_factory=dict)


MAYBE_FAKETIME = (
    "The processes load libfaketime, because the plan has clock faults, and this may be the cause. Try the run without these "
    "faults, e.g. `--nemesis all,-clock-skew,-clock-strobe`. If the system starts then, set `faketime = False` in its class."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """As what a run goes on whose nodes have started by another seed.

    Attributes:
        test: The test, with the cluster and the system that run.
        history: Records its operations.
        logs_dir: The folder for its logs.
    """

    test: Test
    history: Recorder
    logs_dir: Path


class Observer(Protocol):
    """Shows the progress of a run. The run's loop calls its methods, which must not block."""

    def phase(self, text: str) -> None:
        """Is called when a phase begins."""
        ...

    def workload_began(self, watch: Watch, clock: Clock) -> None:
        """Is called when the workload begins; from now on, `watch` has the leader."""
        ...

    def problem(self, text: str) -> None:
        """Is called for an error that does not end the run, and for the error that does."""
        ...


def run(
    test: Test,
    *,
    history: Recorder,
    logs_dir: Path,
    observer: Observer,
    phases: Phases | None = None,
    recorded: Recorded | None = None,
    started: Callable[[], Continued] | None = None,
) -> RunResult:
    """Runs a test once.

    The first SIGINT, SIGTERM or SIGHUP ends the workload, and the run continues with healing, logs and stopping. After a second
    signal, it heals and ends at once.

    Args:
        test: The test.
        history: Records the operations during the run; stays open.
        logs_dir: The folder for the logs; each node has a folder in it.
        observer: Shows the progress.
        phases: Measures the phases.
        recorded: Is called when no operation follows any more, with the outcome so far, if the run comes to its final reads.
            The run then compares the replicas, collects the logs and stops. It must not block.
        started: Is called when the system of a test with a `start_seed` serves. It returns as what the run goes on, in this
            process or in a copy of it (fork(2)).

    Returns:
        The outcome. An error after the set-up is in `RunResult.error`, and is not raised.

    Raises:
        LabrysError: The system could not be installed or started, so there is no history. The nodes were healed, the logs
            collected and the processes stopped before.
        InterruptedEarly: A signal came, and the run could not end in order.
        KeyboardInterrupt: A second signal came.
    """
    # What no stage of the run caught, e.g. a `sys.exit` in a task, has ended the event loop.
    begun = _Run(
        test=test,
        history=history,
        logs_dir=logs_dir,
        observer=observer,
        phases=Phases() if phases is None else phases,
        recorded=recorded,
        started=started,
    )
    world = world_of(test.cluster)
    with test.cluster.entered(), test.blaming():
        try:
            return asyncio.run(begun.go()) if world is None else world.run(begun.go())
        except LabrysError as error:
            if not begun.result.interrupted or isinstance(error, InterruptedEarly):
                raise
            raise InterruptedEarly(f"the run was interrupted, and broke off: {error}") from error


async def go(
    test: Test,
    *,
    history: Recorder,
    logs_dir: Path,
    observer: Observer,
    phases: Phases | None = None,
    recorded: Recorded | None = None,
) -> RunResult:
    """Runs a test like `run`, in the running loop and in the thread's network namespace."""
    return await _Run(
        test=test,
        history=history,
        logs_dir=logs_dir,
        observer=observer,
        phases=Phases() if phases is None else phases,
        recorded=recorded,
    ).go()


class _Run:
    def __init__(
        self,
        *,
        test: Test,
        history: Recorder,
        logs_dir: Path,
        observer: Observer,
        phases: Phases,
        recorded: Recorded | None,
        started: Callable[[], Continued] | None = None,
    ) -> None:
        self.started = started
        self.phases = phases
        self.recorded = recorded
        self.test = test
        self.history = history
        self.logs_dir = logs_dir
        self.observer = observer
        self.result = RunResult()
        if test.final_reads:
            self.result.final_reads = FinalReads(missing="The run ended before its final reads.")
        self.watching: asyncio.Task[None] | None = None
        self.nodes = tuple(test.cluster.nodes)
        self.pacer = Pacer()
        self.result.paces = self.pacer.stages

    async def go(self) -> RunResult:
        self.clock = Clock(asyncio.get_running_loop())
        self.stop = asyncio.Event()
        self.left = Left()
        with stopping(self.stop, self._interrupted), self.test.blaming():
            try:
                await self._stages()
            finally:
                await self._leave_no_task()
                await self._leave_no_process()
        return self.result

    async def _stages(self) -> None:
        try:
            await self._set_up()
            try:
                await self._kept(self._work)
                await self._heal()
                if not self.stop.is_set() and self.result.error is None:
                    await self._kept(lambda: self._unless_stopped(self._observe_recovery(), STAGE_GRACE_S))
            finally:
                await self._stop_watching()
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._heal()))
            raise KeyboardInterrupt from None
        except BaseException:
            await self._heal()
            await self._take_down()
            raise
        await self._take_down()

    async def _leave_no_process(self) -> None:
        """Ends what the system's code has started on this machine, however the run ends."""
        for process in await asyncio.to_thread(self.left.end):
            name = self.test.system.name
            self._problem(f"the code of {name} left process {process} on this machine; Labrys has ended it")

    async def _leave_no_task(self) -> None:
        """Ends tasks of foreign code that ignored their cancellation, or the end of the loop would wait for them."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await ended([task for task in left if task is not None], GRACE_S)

    async def _kept(self, stage: Callable[[], Awaitable[None]]) -> None:
        """Carries out a stage of the run. An error in it ends the run, and the result so far stays."""
        try:
            await stage()
        except LabrysError as error:
            self._broke_off(str(error))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:
            logger.exception("the run ended by an unexpected error")
            self._broke_off(described(self.test.blamed(error)))

    def _broke_off(self, error: str) -> None:
        self.result.error = error
        self.observer.problem(error)

    def _interrupted(self) -> None:
        self.result.interrupted = True
        self.observer.problem(
            "interrupted: healing, collecting logs, checking the recorded operations; press Ctrl-C again to stop at once"
        )

    async def _set_up(self) -> None:
        system, nodes = self.test.system, self.nodes
        self.observer.phase(f"installing {system.name} on {counted(len(nodes), 'node')}")

        def install(node: Node) -> None:
            system.stop(node)
            system.wipe(node)
            system.install(node)

        with self.phases.during(ph.INSTALL):
            await self.test.nemesis.heal()
            await asyncio.to_thread(on_all, nodes, install)
            await self._prepare()
        self._leave_if_stopped()
        self.observer.phase(f"starting {system.name}")
        try:
            with self.phases.during(ph.START):
                timeout_s = slowed(system.ready_timeout_s)
                await readiness.bring_up(system, timeout_s, first=True, wait=self._until_ready)
        except InterruptedEarly:
            raise
        except LabrysError as error:
            preloading = await asyncio.to_thread(on_nodes, nodes, lambda node: preloads(self.test.cluster.remote(node)))
            if True in preloading.values():
                error.add_note(MAYBE_FAKETIME)
            raise
        self.result.ready_s = self.clock.now_s()
        await asyncio.to_thread(self.left.note)
        if self.test.start_seed is not None:
            await self._go_on()

    async def _prepare(self) -> None:
        """Prepares the nodes for the plan. Nodes that start by a seed of their own start in the same way for each plan."""
        world = world_of(self.test.cluster)
        if self.test.start_seed is None:
            await self.test.nemesis.prepare(self.test.plan)
        elif world is not None:
            world.prepare_loss()

    async def _go_on(self) -> None:
        """Goes on by the seed of the run."""
        if self.started is not None:
            continued = self.started()
            self.test, self.history, self.logs_dir = continued.test, continued.history, continued.logs_dir
        cast("ProgramWorld", world_of(self.test.cluster)).become(self.test.seed)
        await self.test.nemesis.prepare(self.test.plan)

    async def _until_ready(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Waits until a service serves. An interruption ends the wait and the run."""
        await self._unless_stopped(waiting)
        self._leave_if_stopped()

    async def _unless_stopped(self, waiting: Coroutine[Any, Any, None], patience_s: float = 0.0) -> None:
        """Awaits foreign code. After an interruption, it gets `patience_s` to end by itself, and is cancelled then."""
        wanted = asyncio.ensure_future(without_exit(waiting))
        stopped = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait((wanted, stopped), return_when=asyncio.FIRST_COMPLETED)
            if patience_s and not wanted.done():
                await asyncio.wait((wanted,), timeout=patience_s)
        finally:
            stopped.cancel()
            wanted.cancel()  # has no effect on one that is done
        await ended([wanted], GRACE_S)
        if wanted.done() and not wanted.cancelled():
            wanted.result()

    def _leave_if_stopped(self) -> None:
        if self.stop.is_set():
            raise InterruptedEarly("the run was interrupted before its workload began, so there is nothing to check")

    async def _work(self) -> None:
        test = self.test
        planned = f"{counted(len(test.plan), 'fault')} planned"
        self.observer.phase(f"workload {test.workload.name} for {test.time_limit_s:g} s, {planned}")
        read, unknown = await self._clocks()
        nodes = as_logged(read, self.nodes, test.system.daemons)
        # From here on, time is that of the history: 0 is the start of the workload.
        self.clock = Clock(asyncio.get_running_loop())
        world = world_of(test.cluster)
        self.result.world_s = None if world is None else world.now_ns / NS_PER_S
        if nodes or unknown:
            began_utc = datetime.now(UTC)
            if world is not None and world.wall_ns is not None:
                began_utc = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=world.wall_ns // 1_000)
            self.result.clocks = Clocks(began_utc=began_utc, nodes=nodes, unknown=unknown)
        watch = Watch(system=test.system, clock=self.clock)
        self.result.sightings, self.result.positions = watch.sightings, watch.positions
        self.result.other_sightings, self.result.indexes = watch.others, watch.indexes
        self.observer.workload_began(watch, self.clock)
        clients_nodes = test.system.front().nodes
        self.generator = test.workload.generator(seed=test.seed, streams=test.load.streams(len(clients_nodes)))
        self.watching = asyncio.create_task(watch.run())
        over = asyncio.Event()
        faults = asyncio.create_task(
            conduct(
                test.plan,
                test.nemesis,
                clock=self.clock,
                history=self.history,
                stop=over,
                records=self.result.faults,
                in_turn=test.in_turn,
                watch=watch,
            )
        )
        try:
            with self.phases.during(ph.WORKLOAD), self._paced(WORKLOAD):
                driven = await drive(
                    generator=time_limit(test.time_limit_s, self.generator),
                    clients=clients_of(test.workload, test.system.client),
                    nodes=clients_nodes,
                    load=test.load,
                    seed=test.seed,
                    clock=self.clock,
                    history=self.history,
                    timeout_s=test.operation_timeout_s,
                    stop=self.stop,
                )
            self.result.shed = driven.shed
            self.next_process = driven.next_process
        finally:
            self.result.workload_s = self.clock.now_s()
            over.set()
            with self.phases.during(ph.HEAL):
                self.result.faults = await faults

    async def _clocks(self) -> tuple[Mapping[str, NodeClock], Mapping[str, str]]:
        """Reads the clocks of the nodes, for the times of their logs; nodes of a world have none."""
        world = world_of(self.test.cluster)
        if world is not None:
            return ({} if world.wall_ns is None else dict.fromkeys((node.name for node in self.nodes), RIGHT)), {}
        return await asyncio.to_thread(read_clocks, self.test.cluster, self.nodes)

    def _paced(self, stage: str) -> AbstractContextManager[None]:
        """Measures the control node in a stage. In virtual time there is nothing to measure: it waits for the control node."""
        if in_virtual_time():
            return contextlib.nullcontext()
        return self.pacer.stage(stage, self.clock)

    async def _stop_watching(self) -> None:
        if self.watching is None:
            return
        self.watching.cancel()
        await ended([self.watching], GRACE_S)
        # An error of the watch must not hide another error.
        if self.watching.done() and not self.watching.cancelled() and (error := self.watching.exception()) is not None:
            self._problem(f"watching the nodes ended early: {described(self.test.blamed(error))}")

    def _problem(self, text: str) -> None:
        self.result.problems.append(text)
        self.observer.problem(text)

    async def _heal(self) -> None:
        self.observer.phase("healing")
        try:
            with self.phases.during(ph.HEAL):
                await asyncio.wait_for(self.test.nemesis.heal(), slowed(HEAL_TIMEOUT_S))
        except SwitchEnded as error:
            self._broke_off(str(error))
        except (LabrysError, TimeoutError) as error:
            self._problem(f"healing failed; `labrys cluster heal` tries again: {error}")
        self._take_connections()

    def _take_connections(self) -> None:
        """Takes what the switch has noted since the start of the workload. Healing has stopped it."""
        switch = switch_of(self.test.cluster)
        if switch is None or switch.noted is None:
            return
        notes = [replace(note, time_ns=self.clock.from_monotonic_ns(note.time_ns)) for note in switch.noted]
        self.result.connections = [note for note in notes if note.time_ns >= 0]

    async def _observe_recovery(self) -> None:
        aftermath = Aftermath(
            test=self.test,
            result=self.result,
            generator=self.generator,
            history=self.history,
            observer=self.observer,
            phases=self.phases,
            clock=self.clock,
            stop=self.stop,
            next_process=self.next_process,
            paced=lambda: self._paced(RECOVERY),
            recorded=self.recorded,
            problem=self._problem,
        )
        await aftermath.observe()

    async def _take_down(self) -> None:
        take_down = TakeDown(
            test=self.test,
            result=self.result,
            logs_dir=self.logs_dir,
            observer=self.observer,
            phases=self.phases,
            clock=self.clock,
            problem=self._problem,
        )
        await take_down.carry_out()
