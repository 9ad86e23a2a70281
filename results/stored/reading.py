"""Reads `results.json` back: its parts, faults, sightings and positions.

The rule: the file may come from anyone, so each member is checked against its type in `results.record.forms` before anything
uses it. Only members that a reader needs are checked, because a report measures the others again. Files of
earlier versions lack later members; the functions below state the meaning of a missing one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from harness import targets
from harness.console.members import MAX_S, Duration, instant, read
from harness.faults import RARE_MESSAGE, FaultRecord, Fired, PlannedFault, Proof, Trigger
from harness.node_clocks import Clocks, NodeClock
from harness.phases import Phase
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict
from harness.watch import Positions, Sighting
from harness.world import Execution
from results.measure.outcome import shown
from results.record.forms import (
    Sightings,
    StoredClocks,
    StoredFault,
    StoredPart,
    StoredPlan,
    StoredPositions,
    StoredSighting,
)
from results.store.errors import BadRecord
from results.stored.document import FORMAT, VERSION, workload_end_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value
    from harness.suites.expectation import Shown
    from harness.targets import PlanTarget

T = TypeVar("T")


def member(document: Mapping[str, Value], name: str, form: type[T]) -> T:
    """Returns a required member of a document.

    Raises:
        BadRecord: It is missing, or has another type or range.
    """
    return read(_of(document, name), form, name, error=BadRecord)


def _of(document: Mapping[str, Value], name: str) -> Value:
    if name not in document:
        raise BadRecord(f"the member {name} is missing")
    return document[name]


def verdict_from(value: Value) -> Verdict:
    """Returns the verdict in a member `valid`.

    Raises:
        BadRecord: The member is not a verdict.
    """
    verdict = Verdict.from_json(value)
    if verdict is None:
        raise BadRecord(f'expected true, false or "unknown" in member valid, found {type(value).__name__}')
    return verdict


def parts_from(document: Mapping[str, Value]) -> list[Part]:
    """Returns the parts in a document."""
    return [
        Part(name=name, verdict=verdict_from(part.valid), reason=part.reason, details=part.details, extra=part.extra)
        for name, part in member(document, "parts", dict[str, StoredPart]).items()
    ]


def shown_from(document: Mapping[str, Value]) -> Shown:
    """Returns what the run of a document showed."""
    return shown(document, verdict_from(_of(document, "valid")), parts_from(document))


def faults_from(document: Mapping[str, Value]) -> list[FaultRecord]:
    """Returns the fault records in a document."""
    measured: dict[str, Value] = {"availability": None, "leadership": None}  # a report measures them again
    faults = [fault | measured if isinstance(fault, dict) else fault for fault in member(document, "faults", list[Any])]
    return [_fault(fault) for fault in read(faults, list[StoredFault], "faults", error=BadRecord)]


def _fault(stored: StoredFault) -> FaultRecord:
    planned, proof = stored.planned, stored.proof
    return FaultRecord(
        planned=PlannedFault(
            id=stored.id,
            kind=stored.kind,
            target=_target(planned.target),
            start_s=planned.start_s,
            end_s=planned.end_s,
            trigger=_trigger(planned),
            role=planned.role or None,
            order=tuple(planned.order or ()),
            options=planned.options,
        ),
        targets=tuple(stored.targets),
        start_ns=_ns(stored.start_s),
        end_ns=_ns(stored.end_s),
        proof=None
        if proof is None
        else Proof(effective=stored.effective, reason=proof.reason, measured=proof.measured),
        details=stored.details,
        error=stored.error,
        fired=_fired(stored),
        effect=stored.effect,
    )


def _target(written: str | list[str]) -> PlanTarget:
    try:
        return targets.from_json(written)
    except ValueError as error:
        raise BadRecord(f"faults: {error}") from error


def _trigger(planned: StoredPlan) -> Trigger | None:
    """Returns the trigger of a planned fault. Files of earlier versions have a wait for a rare message, or none."""
    trigger = planned.trigger
    if trigger is UNSET:
        return Trigger(name=RARE_MESSAGE, limit_s=planned.wait_s) if planned.wait_s else None
    if trigger is None:
        return None
    return Trigger(name=trigger.name, limit_s=trigger.limit_s, parameters=trigger.parameters or {})


def _fired(stored: StoredFault) -> Fired | None:
    """Returns what fired the trigger of a fault. Files of earlier versions have the rare message among the details."""
    fired = stored.fired
    if fired is UNSET:
        began = stored.details.get("began")
        return Fired(time_ns=_ns(stored.start_s), what=began) if isinstance(began, str) else None
    if fired is None:
        return None
    return Fired(time_ns=_ns(fired.time_s), what=fired.what, measured=fired.measured)


def other_sightings_from(document: Mapping[str, Value]) -> dict[str, list[Sighting]]:
    """Returns the sightings of other services and groups in a document; files of earlier versions have none."""
    services = read(document.get("other_services", {}), dict[str, Sightings], "other_services", error=BadRecord)
    return {name: _sightings(service.sightings, document) for name, service in services.items()}


def sightings_from(document: Mapping[str, Value]) -> list[Sighting]:
    """Returns the sightings in a document.

    Files of earlier versions lack the end of a sighting. It then lasts until the next sighting of its node, or until the end of
    the workload, when the watch ended in these versions.
    """
    return _sightings(member(document, "sightings", list[StoredSighting]), document)


def _sightings(stored: Sequence[StoredSighting], document: Mapping[str, Value]) -> list[Sighting]:
    found = [
        Sighting(
            time_ns=_ns(each.time_s),
            node=each.node,
            role=each.role,
            term=each.term,
            leader=each.leader,
            until_ns=_ns(each.until_s) if isinstance(each.until_s, float) else None,
        )
        for each in stored
    ]
    end_ns = workload_end_ns(timings_from(document)) or 0
    following: dict[str, int] = {}
    for place in reversed(range(len(found))):
        seen = found[place]
        if stored[place].until_s is UNSET:
            found[place] = replace(seen, until_ns=following.get(seen.node, max(seen.time_ns, end_ns)))
        following[seen.node] = seen.time_ns
    return found


def timings_from(document: Mapping[str, Value]) -> dict[str, float]:
    """Returns the duration of each stage of the run, in seconds; empty if an earlier version wrote the file."""
    return read(document.get("timings", {}), dict[str, Duration], "timings", error=BadRecord)


def phases_from(document: Mapping[str, Value]) -> list[Phase]:
    """Returns the phases of the run; none if an earlier version wrote the file.

    Raises:
        BadRecord: A phase ends before it starts.
    """
    phases = read(document.get("phases", []), list[Phase], "phases", error=BadRecord)
    for place, each in enumerate(phases):
        if not 0 <= each.start_s <= each.end_s <= MAX_S:
            found = f"{each.start_s:g} s to {each.end_s:g} s"
            raise BadRecord(f"phases[{place}]: expected a start at 0 s or later and an end after it, found {found}")
    return phases


def workload_sightings_from(document: Mapping[str, Value]) -> list[Sighting]:
    """Returns the sightings during the workload, without those of healing and final reads, which move the leadership."""
    end_ns = workload_end_ns(timings_from(document))
    return [seen for seen in sightings_from(document) if end_ns is None or seen.time_ns < end_ns]


def clocks_from(document: Mapping[str, Value]) -> Clocks | None:
    """Returns the clocks of the nodes; None if an earlier version wrote the file, or they were not read."""
    if document.get("clocks") is None:
        return None
    stored = member(document, "clocks", StoredClocks)
    return Clocks(
        began_utc=instant(stored.began, "clocks.began", error=BadRecord),
        nodes={
            name: NodeClock(offset_ns=_ns(clock.offset_s), uncertain_ns=_ns(clock.uncertain_s), zone_s=clock.zone_s)
            for name, clock in stored.nodes.items()
        },
        unknown=stored.unknown,
    )


def execution_from(document: Mapping[str, Value]) -> Execution | None:
    """Returns what the programs of a simulated world did; None if there are none."""
    if document.get("execution") is None:
        return None
    return member(document, "execution", Execution)


def positions_from(document: Mapping[str, Value]) -> Positions:
    """Returns the positions in a document; none if an earlier version wrote it.

    Raises:
        BadRecord: A node does not have one index for each time.
    """
    none: Value = {"time_s": [], "applied": {}}
    stored = read(document.get("positions", none), StoredPositions, "positions", error=BadRecord)
    return Positions(time_ns=[_ns(time_s) for time_s in stored.time_s], applied=stored.applied)


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def checked(document: Value, where: str) -> Mapping[str, Value]:
    """Returns `document` if it is a results document of this version or an earlier one.

    In version 1, `fail` of `counts` includes the refusals, and nothing is counted or measured by function. The members that
    this module reads mean the same in both versions.

    Raises:
        BadRecord: It is not.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadRecord(f'{where}: expected an object with "format": "{FORMAT}"')
    if document.get("version") not in (1, VERSION):
        raise BadRecord(
            f"{where}: expected version 1 or {VERSION}, got {document.get('version')!r}; use a newer labrys"
        )
    return document
