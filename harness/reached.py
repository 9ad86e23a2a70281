"""The parts about what a run reached: proven faults, operations that succeed, and the recovery of the system."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from harness.console.plain import counted, counted_of
from harness.errors import headline
from harness.op import FINAL_PHASE, OpType
from harness.units import NS_PER_S
from harness.verdict import CONTROL_NODE, Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import FaultRecord, PlannedFault
    from harness.op import Operation
    from harness.outages import Serving
    from harness.pace import Pace
    from harness.recovery import Recovery

RECOVERED = "recovered"


def faults_effective(faults: Sequence[FaultRecord], plan: Sequence[PlannedFault]) -> Part:
    """Returns the part `faults-effective`: whether each planned kind has a proven effect at least once, at each planned role.

    Args:
        faults: The record of each fault that began.
        plan: All planned faults.
    """
    name = "faults-effective"
    if not plan:
        return Part.of(name, held="No faults were planned.")
    effective = Counter(_name(fault.planned) for fault in faults if fault.proof is not None and fault.proof.effective)
    planned = Counter(map(_name, plan))
    details = {kind: {"planned": count, "effective": effective[kind]} for kind, count in sorted(planned.items())}
    idle = sorted(kind for kind in planned if not effective[kind])
    untested = None
    if idle:
        first = next((fault for fault in faults if _name(fault.planned) == idle[0]), None)
        proof = first.proof if first else None
        why = headline(
            (first.error if first else None) or (proof.reason if proof else _not_begun(idle[0], faults, plan))
        )
        untested = f"No {' and no '.join(idle)} has a proven effect: {why}"
    sentence = f"{counted_of(effective.total(), len(plan), 'planned fault', 'have')} a proven effect."
    return Part.of(name, details, held=sentence, untested=untested)


def _name(fault: PlannedFault) -> str:
    return fault.called


def _not_begun(name: str, faults: Sequence[FaultRecord], plan: Sequence[PlannedFault]) -> str:
    """Returns that no such fault began, and which fault ended after the first one was due: faults in turn wait for it."""
    due_s = min(fault.start_s for fault in plan if _name(fault) == name)
    last = max(faults, key=lambda fault: fault.end_ns, default=None)
    if last is None or last.planned.end_s > due_s or last.end_ns < due_s * NS_PER_S:
        return "it never began"
    late_s = last.end_ns / NS_PER_S - last.planned.end_s
    return f"it never began; {_name(last.planned)} ended {late_s:.1f} s later than planned, so a longer --time-limit may help"


def progress(
    operations: Sequence[Operation],
    faults: Sequence[FaultRecord],
    recovery: Recovery | None,
    serving: Serving | None = None,
) -> Part:
    """Returns the part `progress`: whether operations succeeded at all, during faults, and after the last fault.

    If each proven fault left no quorum up, nothing can succeed during faults. Then reads must show, after one of them, what was
    acknowledged before it; see `harness.outages`. Operations after a restart of all nodes do not count, because the restart may
    hide the consequences of the faults.

    Args:
        operations: The operations of the clients.
        faults: The record of each fault that began.
        recovery: The recovery of the system; None if the run ended before.
        serving: What clients use; None: no fault counts as an outage.
    """
    name = "progress"
    last_heal_ns = max((fault.end_ns for fault in faults), default=0)
    restarted = recovery is not None and recovery.restarted
    restarted_s = None if recovery is None else recovery.restarted_s
    restarted_ns = math.inf if restarted_s is None else restarted_s * NS_PER_S

    def is_late(operation: Operation) -> bool:
        return restarted and (operation.phase == FINAL_PHASE or operation.start_ns >= restarted_ns)

    total = during = after = 0
    for operation in operations:
        if operation.type is not OpType.OK:
            continue
        total += 1
        start_ns = operation.start_ns
        during += any(fault.start_ns <= start_ns < fault.end_ns for fault in faults)
        after += start_ns >= last_heal_ns and not is_late(operation)
    details = {"ok": total, "ok_during_faults": during, "ok_after_faults": after}
    outages = _outages(faults, serving) if total and not during else []
    seen = 0
    if serving is not None and outages:
        seen = serving.reads_after(outages, [operation for operation in operations if not is_late(operation)])
        details["ok_reads_after_outages"] = seen
    left = f"{'The fault' if len(outages) == 1 else 'Each fault'} left no quorum up, so nothing could succeed during it"
    untested = None
    if not total:
        untested = "No operation succeeded, so nothing was tested."
    elif outages and not seen:
        what = "what was acknowledged before, so the faults tested nothing"
        untested = f"{left}; and no read after it shows {what}."
    elif faults and not during and not outages:
        untested = "No operation that was invoked while a fault was on succeeded, so the faults tested nothing."
    elif faults and not after:
        untested = "No operation succeeded after the last fault was healed, so its consequences were not observed."
    when = f", {during:,} of them while a fault was on and {after:,} after the last one" if faults else ""
    if outages:
        shown = f"{counted(seen, 'read')} after it {'shows' if seen == 1 else 'show'} what was acknowledged before"
        when = f", {after:,} of them after the last fault. {left}; {shown}"
    return Part.of(name, details, held=f"{counted(total, 'operation')} succeeded{when}.", untested=untested)


def _outages(faults: Sequence[FaultRecord], serving: Serving | None) -> list[FaultRecord]:
    """Returns the proven faults, if each of them left no quorum up; else none."""
    proven = [fault for fault in faults if fault.is_proven]
    return proven if serving is not None and all(serving.is_outage(fault) for fault in proven) else []


def recovered(recovery: Recovery | None, pace: Pace | None = None, *, refuses: str = "") -> Part:
    """Returns the part `recovered`: whether the system worked again within the deadline after healing.

    If the control node was behind, a missed deadline is unknown and not invalid.

    Args:
        recovery: The recovery of the system; None if the run ended before.
        pace: The measurements of the control node in the same stage; None if there are none.
        refuses: Why a system that did not work again keeps its promise; empty if it does not. See `harness.damaged_files`.
    """
    part = _recovered(recovery)
    if refuses and recovery is not None and recovery.error is not None and part.verdict is Verdict.INVALID:
        reason = f"The system did not work again, as it promises. {refuses}"
        return replace(part, verdict=Verdict.VALID, reason=reason)
    behind = pace.behind if pace is not None else None
    if part.verdict is not Verdict.INVALID or behind is None:
        return part
    reason = f"{part.reason} The control node was behind at that time, so this is not a finding: {behind}."
    return replace(part, verdict=Verdict.UNKNOWN, reason=reason)


def control_node(paces: Mapping[str, Pace]) -> Part:
    """Returns the extra part `control-node`: whether the control node kept up. Parts that depend on timing check it, too."""
    behind = [f"in the stage {stage}, {pace.behind}" for stage, pace in paces.items() if pace.behind]
    details = {stage: asdict(pace) for stage, pace in paces.items()}
    figures = "Latencies and availability of this run are not the system's."
    worst = max((pace.worst_lag_s for pace in paces.values()), default=0.0)
    return Part.of(
        CONTROL_NODE,
        details,
        held=f"The control node kept up; its event loop was late by {worst:.2f} s at most.",
        untested=f"The control node was behind: {'; '.join(behind)}. {figures}" if behind else None,
        extra=True,
    )


def _recovered(recovery: Recovery | None) -> Part:
    if recovery is None:
        reason = "The run ended before its recovery was observed."
        return Part(name=RECOVERED, verdict=Verdict.UNKNOWN, reason=reason)
    details = {
        "seconds": recovery.seconds,
        "from_s": recovery.from_s,
        "restarted": recovery.restarted,
        "restarted_s": recovery.restarted_s,
        "first_error": recovery.first_error,
        "error": recovery.error,
        "served": list(recovery.served),
        "quorum": recovery.quorum,
        "nodes": recovery.nodes,
        "out": dict(recovery.out),
        "unready": recovery.unready,
    }
    verdict, reason = _outcome(recovery)
    return Part(name=RECOVERED, verdict=verdict, reason=reason, details=details)


def _outcome(recovery: Recovery) -> tuple[Verdict, str]:
    """Returns whether a system recovered, and a sentence."""
    standing = _standing(recovery)
    if recovery.error is not None and not recovery.worked:
        why = f"No client got an answer during the workload, nor after it: {headline(recovery.error)}"
        return Verdict.UNKNOWN, why
    if recovery.error is not None:
        why = f"The system did not work again after healing, nor after a restart of every node: {headline(recovery.error)}"
        return Verdict.INVALID, why
    if recovery.restarted:
        why = headline(recovery.first_error or "it gave no reason")
        return Verdict.INVALID, f"The system worked again only after a restart of every node: {why}"
    if not recovery.asked:
        why = f"No operation of a client was sent after healing, so only the nodes say that they serve.{standing}"
        return Verdict.UNKNOWN, why
    after = "at the end of the workload; there was no fault to heal"
    if recovery.healed:
        after = f"again {recovery.seconds:.1f} s after everything was healed"
    where = f"clients at {counted_of(len(recovery.served), recovery.nodes, 'node')}"
    why = f"The system worked {after}: {where} got answers, and the quorum is {recovery.quorum}.{standing}"
    return Verdict.VALID, why


def _standing(recovery: Recovery) -> str:
    """Returns sentences with the nodes that stay out, and with what the system lacks by its own words."""
    out = "; ".join(f"{node} {reason}" for node, reason in recovery.out.items())
    unready = headline(recovery.unready or "")
    return (f" Nodes that stayed out: {out}." if out else "") + (f" By its own words: {unready}." if unready else "")
