"""Reads `results.json` back: its parts, faults, sightings and positions.

The rule: the file may come from anyone, so `results.store.members` checks the type and range of each member before anything
uses it. Files of earlier versions lack later members; the functions below state the meaning of a missing one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.faults import RARE_MESSAGE, FaultRecord, Fired, PlannedFault, Proof, Trigger
from harness.node_clocks import Clocks, NodeClock
from harness.phases import Phase
from harness.verdict import Part, Verdict
from harness.watch import Positions, Sighting
from results.measure.outcome import shown
from results.store import members as must
from results.store.document import FORMAT, VERSION, workload_end_ns
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value
    from harness.suites.expectation import Shown


MAX_ZONE_S = 86_400


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
        Part(
            name=name,
            verdict=verdict_from(must.member(part, "valid")),
            reason=must.text(must.member(part, "reason"), f"parts.{name}.reason"),
            details=must.mapping(must.member(part, "details"), f"parts.{name}.details"),
            extra=must.flag(part.get("extra", False), f"parts.{name}.extra"),
        )
        for name, part in (
            (name, must.mapping(part, f"parts.{name}"))
            for name, part in must.mapping(must.member(document, "parts"), "parts").items()
        )
    ]


def shown_from(document: Mapping[str, Value]) -> Shown:
    """Returns what the run of a document showed."""
    return shown(document, verdict_from(must.member(document, "valid")), parts_from(document))


def faults_from(document: Mapping[str, Value]) -> list[FaultRecord]:
    """Returns the fault records in a document."""
    faults = must.listed(must.member(document, "faults"), "faults")
    return [
        _fault_from(must.mapping(fault, f"faults[{index}]"), f"faults[{index}]") for index, fault in enumerate(faults)
    ]


def _fault_from(fault: Mapping[str, Value], name: str) -> FaultRecord:
    def of(key: str) -> Value:
        return must.member(fault, key)

    planned = must.mapping(of("planned"), f"{name}.planned")
    proof = None if of("proof") is None else must.mapping(of("proof"), f"{name}.proof")
    target = must.member(planned, "target")
    return FaultRecord(
        planned=PlannedFault(
            id=must.whole(of("id"), f"{name}.id"),
            kind=must.text(of("kind"), f"{name}.kind"),
            target=target if isinstance(target, str) else must.texts(target, f"{name}.planned.target"),
            start_s=must.seconds(must.member(planned, "start_s"), f"{name}.planned.start_s"),
            end_s=must.seconds(must.member(planned, "end_s"), f"{name}.planned.end_s"),
            trigger=_trigger_from(planned, f"{name}.planned"),
            options=must.mapping(must.member(planned, "options"), f"{name}.planned.options"),
        ),
        targets=must.texts(of("targets"), f"{name}.targets"),
        start_ns=must.nanoseconds(of("start_s"), f"{name}.start_s"),
        end_ns=must.nanoseconds(of("end_s"), f"{name}.end_s"),
        proof=None
        if proof is None
        else Proof(
            effective=of("effective") is True,
            reason=must.text(must.member(proof, "reason"), f"{name}.proof.reason"),
            measured=must.mapping(must.member(proof, "measured"), f"{name}.proof.measured"),
        ),
        details=must.mapping(of("details"), f"{name}.details"),
        error=must.text_or_none(of("error"), f"{name}.error"),
        fired=_fired_from(fault, name),
    )


def _trigger_from(planned: Mapping[str, Value], name: str) -> Trigger | None:
    """Returns the trigger of a planned fault. Files of earlier versions have a wait for a rare message, or none."""
    if "trigger" not in planned:
        wait_s = must.seconds(planned.get("wait_s", 0.0), f"{name}.wait_s")
        return Trigger(name=RARE_MESSAGE, limit_s=wait_s) if wait_s else None
    if planned["trigger"] is None:
        return None
    trigger = must.mapping(planned["trigger"], f"{name}.trigger")
    return Trigger(
        name=must.text(must.member(trigger, "name"), f"{name}.trigger.name"),
        limit_s=must.seconds(must.member(trigger, "limit_s"), f"{name}.trigger.limit_s"),
        parameters=must.mapping(trigger.get("parameters", {}), f"{name}.trigger.parameters"),
    )


def _fired_from(fault: Mapping[str, Value], name: str) -> Fired | None:
    """Returns what fired the trigger of a fault. Files of earlier versions have the rare message among the details."""
    if "fired" not in fault:
        began = must.mapping(must.member(fault, "details"), f"{name}.details").get("began")
        if not isinstance(began, str):
            return None
        return Fired(time_ns=must.nanoseconds(must.member(fault, "start_s"), f"{name}.start_s"), what=began)
    if fault["fired"] is None:
        return None
    fired = must.mapping(fault["fired"], f"{name}.fired")
    return Fired(
        time_ns=must.nanoseconds(must.member(fired, "time_s"), f"{name}.fired.time_s"),
        what=must.text(must.member(fired, "what"), f"{name}.fired.what"),
        measured=must.mapping(must.member(fired, "measured"), f"{name}.fired.measured"),
    )


def other_sightings_from(document: Mapping[str, Value]) -> dict[str, list[Sighting]]:
    """Returns the sightings of other services and groups in a document; files of earlier versions have none."""
    services = must.mapping(document.get("other_services", {}), "other_services")
    return {
        name: sightings_from(must.mapping(service, f"other_services.{name}"), f"other_services.{name}.")
        for name, service in services.items()
    }


def sightings_from(document: Mapping[str, Value], where: str = "") -> list[Sighting]:
    """Returns the sightings in a document, or in the part of it that `where` names in errors.

    Files of earlier versions lack the end of a sighting. It then lasts until the next sighting of its node, or until the end of
    the workload, when the watch ended in these versions.
    """
    found: list[Sighting] = []
    newest: dict[str, int] = {}
    undated: set[str] = set()
    for index, each in enumerate(must.listed(must.member(document, "sightings"), f"{where}sightings")):
        name = f"{where}sightings[{index}]"
        sighting = must.mapping(each, name)
        node = must.text(must.member(sighting, "node"), f"{name}.node")
        time_ns = must.nanoseconds(must.member(sighting, "time_s"), f"{name}.time_s")
        if node in undated:
            found[newest[node]] = replace(found[newest[node]], until_ns=time_ns)
            undated.remove(node)
        until_s = sighting.get("until_s")
        if "until_s" not in sighting:
            undated.add(node)
        newest[node] = len(found)
        term = must.member(sighting, "term")
        found.append(
            Sighting(
                time_ns=time_ns,
                node=node,
                role=must.text_or_none(must.member(sighting, "role"), f"{name}.role"),
                term=None if term is None else must.whole(term, f"{name}.term", minimum=-must.MAX_WHOLE),
                leader=must.text_or_none(must.member(sighting, "leader"), f"{name}.leader"),
                until_ns=None if until_s is None else must.nanoseconds(until_s, f"{name}.until_s"),
            )
        )
    end_ns = workload_end_ns(timings_from(document)) or 0
    for node in undated:
        last = found[newest[node]]
        found[newest[node]] = replace(last, until_ns=max(last.time_ns, end_ns))
    return found


def timings_from(document: Mapping[str, Value]) -> dict[str, float]:
    """Returns the duration of each stage of the run, in seconds; empty if an earlier version wrote the file."""
    timings = must.mapping(document.get("timings", {}), "timings")
    return {name: must.seconds(value, f"timings.{name}") for name, value in timings.items()}


def phases_from(document: Mapping[str, Value]) -> list[Phase]:
    """Returns the phases of the run; none if an earlier version wrote the file.

    Raises:
        BadRecord: A phase ends before it starts.
    """
    found = []
    for index, each in enumerate(must.listed(document.get("phases", []), "phases")):
        name = f"phases[{index}]"
        phase = must.mapping(each, name)
        start_s = must.seconds(must.member(phase, "start_s"), f"{name}.start_s")
        end_s = must.seconds(must.member(phase, "end_s"), f"{name}.end_s")
        if not 0 <= start_s <= end_s:
            raise BadRecord(
                f"{name}: expected a start at 0 s or later and an end after it, found {start_s:g} s to {end_s:g} s"
            )
        found.append(
            Phase(
                name=must.text(must.member(phase, "name"), f"{name}.name"),
                start_s=start_s,
                end_s=end_s,
                node=must.text_or_none(must.member(phase, "node"), f"{name}.node"),
            )
        )
    return found


def workload_sightings_from(document: Mapping[str, Value]) -> list[Sighting]:
    """Returns the sightings during the workload, without those of healing and final reads, which move the leadership."""
    end_ns = workload_end_ns(timings_from(document))
    return [seen for seen in sightings_from(document) if end_ns is None or seen.time_ns < end_ns]


def clocks_from(document: Mapping[str, Value]) -> Clocks | None:
    """Returns the clocks of the nodes; None if an earlier version wrote the file, or they were not read."""
    if document.get("clocks") is None:
        return None
    clocks = must.mapping(document["clocks"], "clocks")
    nodes = must.mapping(must.member(clocks, "nodes"), "clocks.nodes")
    unknown = must.mapping(must.member(clocks, "unknown"), "clocks.unknown")

    def of(name: str) -> NodeClock:
        where = f"clocks.nodes.{name}"
        clock = must.mapping(nodes[name], where)
        zone_s = must.whole(must.member(clock, "zone_s"), f"{where}.zone_s", minimum=-MAX_ZONE_S)
        if zone_s > MAX_ZONE_S:
            raise BadRecord(f"{where}.zone_s: expected at most {MAX_ZONE_S}, found {zone_s}")
        return NodeClock(
            offset_ns=must.nanoseconds(must.member(clock, "offset_s"), f"{where}.offset_s"),
            uncertain_ns=must.nanoseconds(must.member(clock, "uncertain_s"), f"{where}.uncertain_s"),
            zone_s=zone_s,
        )

    return Clocks(
        began_utc=must.instant(must.member(clocks, "began"), "clocks.began"),
        nodes={name: of(name) for name in nodes},
        unknown={name: must.text(why, f"clocks.unknown.{name}") for name, why in unknown.items()},
    )


def positions_from(document: Mapping[str, Value]) -> Positions:
    """Returns the positions in a document; none if an earlier version wrote it.

    Raises:
        BadRecord: A node does not have one index for each time.
    """
    positions = must.mapping(document.get("positions", {"time_s": [], "applied": {}}), "positions")
    time_ns = [
        must.nanoseconds(time_s, "positions.time_s")
        for time_s in must.listed(must.member(positions, "time_s"), "positions.time_s")
    ]
    applied = {
        node: [
            None if index is None else must.whole(index, f"positions.applied.{node}", minimum=-must.MAX_WHOLE)
            for index in must.listed(indexes, f"positions.applied.{node}")
        ]
        for node, indexes in must.mapping(must.member(positions, "applied"), "positions.applied").items()
    }
    for node, indexes in applied.items():
        if len(indexes) != len(time_ns):
            raise BadRecord(f"positions: expected {len(time_ns)} applied indexes of {node}, found {len(indexes)}")
    return Positions(time_ns=time_ns, applied=applied)


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
