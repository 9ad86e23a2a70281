"""Which faults were between two moments of a run, as a clause: `after all nodes lost power`.

"After" means later in time, and claims no cause. A fault counts only if its effect was proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.console.plain import counted, listed, name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.faults import FaultRecord
    from harness.op import Operation

MAX_CLAUSES: Final = 2


def faults_between(faults: Sequence[FaultRecord], from_ns: int, culprit: Operation | None) -> str:
    """Returns which faults were between a time and the decisive operation, as a clause; empty if the run had none.

    Args:
        faults: The faults of the run.
        from_ns: The time from which on something must have been there.
        culprit: The decisive operation; None: the end of the run.
    """
    proven = [fault for fault in faults if fault.is_proven and fault.end_ns > fault.start_ns]
    if culprit is None:
        later = [fault for fault in proven if fault.end_ns > from_ns]
        return f"after {clauses(later)}" if later else ""
    between = [fault for fault in proven if fault.start_ns < culprit.last_ns and fault.end_ns > from_ns]
    over = [fault for fault in between if fault.end_ns <= culprit.start_ns or _stopped_before(fault, culprit)]
    on = [fault for fault in between if fault not in over]
    if between:
        return listed([*([f"after {clauses(over)}"] if over else []), *([f"while {clauses(on)}"] if on else [])], "and")
    if not proven:
        return ""
    return "before any fault" if min(fault.start_ns for fault in proven) >= culprit.last_ns else "while no fault was on"


def _stopped_before(fault: FaultRecord, culprit: Operation) -> bool:
    """Returns whether a fault ended processes before an operation: that is over at once, though they start again later."""
    return bool(fault.stopped) and fault.start_ns < culprit.start_ns


def clauses(faults: Sequence[FaultRecord]) -> str:
    """Returns what happened, as clauses; of many faults, their number and their kinds."""
    what = list(dict.fromkeys(happened(fault) for fault in faults))
    if len(what) <= MAX_CLAUSES:
        return listed(what, "and")
    kinds = list(dict.fromkeys(fault.planned.called for fault in faults))
    return f"{counted(len(faults), 'fault')} happened ({', '.join(_few(kinds))})"


def _few(kinds: Sequence[str]) -> Iterator[str]:
    yield from (name(kind) for kind in kinds[:4])
    if len(kinds) > 4:
        yield f"and {counted(len(kinds) - 4, 'more kind')}"


def happened(fault: FaultRecord) -> str:
    """Returns what a fault did, as a clause; a fault of another package may have only its kind."""
    if fault.effect:
        return name(fault.effect)
    kind = name(fault.planned.called)
    return f"the fault {kind} hit {name(', '.join(fault.targets)) or 'no node'}"
