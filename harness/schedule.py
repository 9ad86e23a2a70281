"""Carries out a plan of faults: begins, proves and ends each fault at its time, and records it.

Invariants:

- Each fault that begins also ends, even if its start fails. If the run stops early, all open faults end at once.
- An error of a fault is in its record, and never stops the run. All waits are bounded.
- A fault with a trigger begins when this fires, and ends so much earlier as it began earlier. If the trigger does not fire
  within its limit, the fault never begins. Its record then has no proof, no duration, and the reason as its error.
- Faults in turn never overlap, but those with the same times take their turn together. If one has not ended when the next
  one is due, the next one waits for that end and for the planned pause after it. Each lasts as long as planned, from the
  moment when it has begun.
- The proof of a state has two looks, right after the begin and just before the end. Both must see the effect. The proof says at
  what times.
- In the history, each fault has two events `start-<kind>` and two `stop-<kind>`, before and after the commands, as in Jepsen.
  The effect begins between the first two, and ends between the last two.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from harness.blame import without_exit
from harness.errors import LabrysError, described
from harness.fault_events import event_name
from harness.faults import FaultRecord, Proof, Sight, unseen_at_the_end
from harness.op import NEMESIS, OpType
from harness.slowness import slowed
from harness.targets import names_of
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from typing import Any

    from harness.clock import Clock
    from harness.faults import Begun, Fired, Nemesis, PlannedFault
    from harness.history import Recorder
    from harness.op import Value
    from harness.watch import Watch

T = TypeVar("T")

BEGIN_TIMEOUT_S = 30.0
LOOK_TIMEOUT_S = 20.0
END_TIMEOUT_S = 60.0
WAIT_MARGIN_S = 1.0


async def conduct(
    plan: Sequence[PlannedFault],
    nemesis: Nemesis,
    *,
    clock: Clock,
    history: Recorder,
    stop: asyncio.Event,
    records: list[FaultRecord] | None = None,
    in_turn: bool = False,
    watch: Watch | None = None,
) -> list[FaultRecord]:
    """Carries out a plan.

    Args:
        plan: The faults, in the order of their start. They may overlap, unless they go in turn.
        nemesis: Injects and heals the faults.
        clock: The run's clock; the times of the plan count from its 0.
        history: Records the events.
        stop: When set, open faults end, and no other fault begins.
        records: Gets each record when its fault is over, so that a cancellation loses none.
        in_turn: Whether a fault waits until the one before it has ended, and for the planned pause after it.
        watch: The polls of the nodes, for triggers.

    Returns:
        The records of all faults that began, and of those whose trigger did not fire, in the order of the plan.
    """
    finished = [] if records is None else records
    sight = Sight(clock=clock, history=history, watch=watch)
    performances = [_Performance(fault, nemesis, sight, stop) for fault in plan]
    if in_turn:
        await _one_after_the_other(performances, clock, finished)
    else:
        await _together([performance.carry_out(finished) for performance in performances])
    return sorted(finished, key=lambda record: record.planned.id)


async def _one_after_the_other(performances: Sequence[_Performance], clock: Clock, records: list[FaultRecord]) -> None:
    planned_end_s = 0.0
    turns: list[list[_Performance]] = []
    for performance in performances:
        if turns and performance.fault.goes_with(turns[-1][0].fault):
            turns[-1].append(performance)
        else:
            turns.append([performance])
    for turn in turns:
        fault = turn[0].fault
        late_s = 0.0
        if clock.now_s() > fault.start_s:
            late_s = clock.now_s() - planned_end_s  # the planned pause follows the late end
        await _together([performance.carry_out(records, late_s=late_s, in_turn=True) for performance in turn])
        planned_end_s = fault.end_s


async def _together(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Waits for all, even if one fails; a cancellation reaches each of them."""
    for outcome in await asyncio.gather(*map(asyncio.create_task, work), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


class _Performance:
    """One fault, from its start to its record."""

    def __init__(self, fault: PlannedFault, nemesis: Nemesis, sight: Sight, stop: asyncio.Event) -> None:
        self.fault = fault
        self._nemesis = nemesis
        self._sight = sight
        self._clock = sight.clock
        self._history = sight.history
        self._stop = stop
        self._end_s = fault.end_s
        self._in_turn = False
        self._targets: tuple[str, ...] = names_of(fault.target)
        self._fired: Fired | None = None
        self._details: Mapping[str, Value] = {}
        self._effect = ""
        self._proof: Proof | None = None
        self._looking_s = 0.0  # the duration of the first look
        self._seen_s = 0.0  # the end of the first look
        self._again_s: float | None = None  # the start of the second look, if it saw the effect or its end
        self._errors: list[str] = []

    async def carry_out(self, records: list[FaultRecord], *, late_s: float = 0.0, in_turn: bool = False) -> None:
        """Begins, proves and ends the fault, `late_s` after the times of the plan."""
        fault = self.fault
        self._end_s, self._in_turn = fault.end_s + late_s, in_turn
        await self._until(fault.start_s + late_s)
        if fault.trigger is not None and not self._stop.is_set():
            await self._wait_for_trigger()
        if self._stop.is_set():
            return
        if fault.trigger is not None and self._fired is None:
            now_ns = self._clock.now_ns()
            records.append(self._record(now_ns, now_ns))
            return
        start_ns = self._note({}, begins=True)
        try:
            begun = await self._attempt("start", self._nemesis.begin(fault), slowed(BEGIN_TIMEOUT_S))
            if begun is not None:
                await self._after_begin(begun, start_ns)
                await self._look_again()
            await self._until(self._end_s)
            self._note({}, begins=False)
            measured = await self._attempt("end", self._nemesis.end(fault), slowed(END_TIMEOUT_S))
            self._proof = measured if begun is not None and measured is not None else self._proof
            self._proof = None if self._proof is None else self._timed(self._proof)
        except asyncio.CancelledError:
            self._errors.append("the run ended before this fault was over")
            raise
        finally:
            proof = self._proof
            summary = {} if proof is None else {"effective": proof.effective, "reason": proof.reason}
            end_ns = self._note(summary, begins=False)
            records.append(self._record(start_ns, end_ns))

    def _record(self, start_ns: int, end_ns: int) -> FaultRecord:
        return FaultRecord(
            planned=self.fault,
            targets=self._targets,
            start_ns=start_ns,
            end_ns=end_ns,
            proof=self._proof,
            details=self._details,
            error="; ".join(self._errors) or None,
            fired=self._fired,
            effect=self._effect,
        )

    async def _wait_for_trigger(self) -> None:
        """Waits for the trigger, and moves the end of the fault to an earlier time if it fires early."""
        fault = self.fault
        by_s = self._clock.now_s() + fault.wait_s
        waiting = self._nemesis.wait(fault, self._sight)
        self._fired = await self._attempt("wait", waiting, fault.wait_s + WAIT_MARGIN_S, until_stop=True)
        self._end_s -= max(0.0, by_s - self._clock.now_s())
        if self._fired is None and not self._errors:
            self._errors.append(
                f"it never began, because its trigger {fault.trigger} did not fire in {fault.wait_s:g} s"
            )

    async def _after_begin(self, begun: Begun, start_ns: int) -> None:
        self._targets = tuple(begun.targets)
        self._details = begun.details
        self._effect = begun.effect
        self._note({}, begins=True)
        self._proof = Proof(effective=False, reason="The effect was not measured before the fault ended.")
        if self._in_turn:
            self._end_s = max(self._end_s, self._clock.now_s() + self.fault.lasts_s)
        left_s = self._end_s - self._clock.now_s()
        if left_s <= 0:
            took_s = self._clock.now_s() - start_ns / NS_PER_S
            self._errors.append(
                f"its start took {took_s:.1f} s, and {self.fault.lasts_s:.1f} s were planned for it and its proof; "
                "plan longer faults with --fault-on"
            )
            return
        began_s = self._clock.now_s()
        proof = await self._attempt("proof", self._nemesis.prove(self.fault), left_s, until_stop=True)
        if proof is not None:
            self._proof = proof
            self._seen_s = self._clock.now_s()
            self._looking_s = self._seen_s - began_s

    async def _look_again(self) -> None:
        """Looks at the effect again. If that takes as long as the first look, it is done at the planned end."""
        first = self._proof
        if first is None or not first.effective:
            return
        await self._until(self._end_s - self._looking_s)
        again_s = self._clock.now_s()
        errors = len(self._errors)
        second = self._nemesis.look_again(self.fault)
        proof = await self._attempt("second look", second, slowed(LOOK_TIMEOUT_S))
        if proof is not None:
            self._proof = proof
            self._again_s = again_s
        elif len(self._errors) > errors:
            self._proof = unseen_at_the_end(first)

    def _timed(self, proof: Proof) -> Proof:
        """Returns a proof with the times at which the effect was seen; without them, nobody looked twice."""
        if self._again_s is None or not proof.effective:
            return proof
        times_s = [round(self._seen_s, 3), round(self._again_s, 3)]
        seen = f"It was seen at {times_s[0]:.1f} s, and again at {times_s[1]:.1f} s."
        return replace(proof, reason=f"{proof.reason} {seen}", measured={**proof.measured, "seen_s": times_s})

    async def _attempt(
        self, action: str, work: Coroutine[Any, Any, T], timeout_s: float, *, until_stop: bool = False
    ) -> T | None:
        """Awaits the nemesis for a bounded time, and keeps errors for the record."""
        task = asyncio.create_task(without_exit(work))
        waits_for: list[asyncio.Task[Any]] = [task]
        if until_stop:
            waits_for.append(asyncio.create_task(self._stop.wait()))
        try:
            await asyncio.wait(waits_for, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not task.cancelled():
                return task.result()
            how = (
                "was cut short by the end of the run" if self._stop.is_set() else f"took longer than {timeout_s:.3g} s"
            )
            self._errors.append(f"its {action} {how}")
        except Exception as error:  # noqa: BLE001 - kept for the record; a fault never stops the run
            self._errors.append(f"its {action} failed: {described(error)}")
        finally:
            for waiting in waits_for:
                waiting.cancel()
        return None

    async def _until(self, at_s: float) -> None:
        delay_s = at_s - self._clock.now_s()
        if delay_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay_s)

    def _note(self, more: Mapping[str, Value], *, begins: bool) -> int:
        """Records an event, and returns its time even if it could not be recorded."""
        now_ns = self._clock.now_ns()
        value = {"fault": self.fault.id, "targets": list(self._targets), **more}
        try:
            self._history.append(
                time_ns=now_ns,
                op_type=OpType.INFO,
                process=NEMESIS,
                f=event_name(self.fault.kind, begins=begins),
                value=value,
            )
        except LabrysError as error:
            self._errors.append(f"recording its {'start' if begins else 'stop'} failed: {error}")
        return now_ns
