"""Reads `results.json` back.

The rule: the file may come from anyone, so each member is checked against its type before anything uses it. Only members that a
reader needs are checked, because a report measures the others again.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from harness.console.members import Duration, read
from harness.verdict import Part, Verdict
from harness.watch import Sighting
from results.measure.outcome import shown
from results.record.forms import StoredPart
from results.record.record import Observations
from results.store.errors import BadRecord
from results.stored.document import FORMAT, VERSION, workload_end_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value
    from harness.suites.expectation import Shown

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


def observations_from(document: Mapping[str, Value]) -> Observations:
    """Returns what was observed of the run of a document."""
    for field in fields(Observations):
        _of(document, field.name)
    return read(document, Observations, "", error=BadRecord)


def workload_sightings_from(document: Mapping[str, Value]) -> list[Sighting]:
    """Returns the sightings during the workload, without those of healing and final reads, which move the leadership."""
    end_ns = workload_end_ns(member(document, "timings", dict[str, Duration]))
    sightings = member(document, "sightings", list[Sighting])
    return [seen for seen in sightings if end_ns is None or seen.time_ns < end_ns]


def checked(document: Value, where: str) -> Mapping[str, Value]:
    """Returns `document` if it is a results document of this version.

    Raises:
        BadRecord: It is not.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadRecord(f'{where}: expected an object with "format": "{FORMAT}"')
    if document.get("version") != VERSION:
        raise BadRecord(
            f"{where}: expected version {VERSION}, got {document.get('version')!r}; use the labrys that wrote it"
        )
    return document
