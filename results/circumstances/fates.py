"""Why a message between two nodes did not arrive, as far as the faults of the run say it.

A fault that was on explains the loss. If several do, one that certainly drops the message wins. The times of faults are those
of their first and last commands, so in real time an edge is known to some milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_MS
from results.circumstances.faults import on_during
from results.circumstances.grudges import grudge_of, hears
from results.words.bounds import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults import FaultRecord

KILLS: Final = ("kill", "crash")
PAUSES: Final = ("pause",)
LOSSES: Final = ("loss", "corrupt", "rate")
WAY_NS: Final = 5 * NS_PER_MS  # a process that is killed meanwhile does not get the message any more


def does(fault: FaultRecord, endings: Sequence[str]) -> bool:
    """Returns whether the kind of a fault ends with one of some words, e.g. `minor-kill` with `kill`."""
    return fault.planned.kind.rpartition("-")[2] in endings


def fate(faults: Sequence[FaultRecord], source: str, target: str, sent_ns: int) -> str:
    """Returns why a message was lost, e.g. `cut, fault 5`; empty if no fault explains it.

    Args:
        faults: The faults of the run.
        source: The node that sent it.
        target: The node that did not get it.
        sent_ns: When it was sent.
    """
    on = on_during(faults, sent_ns, sent_ns + 1)
    for fault in on:
        grudge = grudge_of(fault)
        if grudge is not None and not hears(grudge, target, source):
            return f"cut, fault {fault.planned.id}"
    for fault in on_during(faults, sent_ns, sent_ns + WAY_NS):
        if target in fault.targets and does(fault, KILLS):
            return f"{label(target)} was down, fault {fault.planned.id}"
    for fault in on:
        if does(fault, LOSSES) and {source, target} & {*fault.targets}:
            return f"perhaps {label(fault.planned.kind)}, fault {fault.planned.id}"
    for fault in on:
        if target in fault.targets and does(fault, PAUSES):
            return f"{label(target)} was paused, fault {fault.planned.id}"
    return ""
