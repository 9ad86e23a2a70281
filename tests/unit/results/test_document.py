"""results.json conforms to its schema, has the record's facts, and restores the record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Meta

from harness.console.members import read, written
from harness.errors import InputError
from harness.faults import FaultRecord, Fired, PlannedFault, Proof, Trigger
from harness.op import OpType
from harness.suites.thresholds import read_threshold
from harness.targets import PLAN_WORDS, Named
from harness.verdict import Part, Verdict, reason_of, verdict_of
from harness.watch import Positions, Sighting
from results.measure.op_outcomes import OUTCOMES
from results.record.record import Observations
from results.record.record import test_document as as_document
from results.record.record import test_from_document as from_document
from results.store.errors import BadRecord
from results.stored.document import build
from results.stored.reading import (
    checked,
    observations_from,
    parts_from,
    shown_from,
    workload_sightings_from,
)
from results.words.formatting import outcomes

if TYPE_CHECKING:
    from results.record.record import RunRecord

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs" / "reference" / "results.schema.json").read_text(encoding="utf-8")
)
INT64 = st.integers(-(2**63) + 1, 2**63 - 1)
TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
DETAILS = st.dictionaries(TEXT, JSON, max_size=3)
TIME_NS = st.integers(0, 10**15)
PARTS = st.builds(Part, name=TEXT, verdict=st.sampled_from(Verdict), reason=TEXT, details=DETAILS, extra=st.booleans())
FAULTS = st.builds(
    FaultRecord,
    planned=st.builds(
        PlannedFault,
        id=st.integers(0, 99),
        kind=TEXT,
        target=st.sampled_from(list(PLAN_WORDS.values())) | st.builds(Named, st.lists(TEXT, max_size=2).map(tuple)),
        role=st.none() | TEXT,
        order=st.lists(TEXT, max_size=2).map(tuple),
        start_s=st.floats(0, 1e6),
        end_s=st.floats(0, 1e6),
        trigger=st.none()
        | st.builds(
            Trigger, name=TEXT, limit_s=st.floats(0, 1e6), parameters=st.dictionaries(TEXT, st.integers(), max_size=2)
        ),
        options=st.dictionaries(TEXT, st.integers(), max_size=2),
    ),
    targets=st.lists(TEXT, max_size=3).map(tuple),
    start_ns=TIME_NS,
    end_ns=TIME_NS,
    proof=st.none()
    | st.builds(Proof, effective=st.booleans(), reason=TEXT, measured=st.dictionaries(TEXT, st.integers())),
    details=st.dictionaries(TEXT, st.integers(), max_size=2),
    error=st.none() | TEXT,
    fired=st.none()
    | st.builds(Fired, time_ns=TIME_NS, what=TEXT, measured=st.dictionaries(TEXT, st.integers(), max_size=2)),
)
SIGHTINGS = st.builds(
    Sighting,
    time_ns=TIME_NS,
    node=TEXT,
    role=st.none() | TEXT,
    term=st.none() | INT64,
    leader=st.none() | TEXT,
    until_ns=st.none() | TIME_NS,
)
POSITIONS = st.integers(0, 4).flatmap(
    lambda polls: st.builds(
        Positions,
        time_ns=st.lists(TIME_NS, min_size=polls, max_size=polls),
        applied=st.dictionaries(TEXT, st.lists(st.none() | INT64, min_size=polls, max_size=polls), max_size=3),
    )
)


def validate(document: Any) -> None:
    """Asserts that a document conforms to the schema, from the reader's side."""
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(document, allow_nan=False)))


def test_the_schema_is_one() -> None:
    """The schema itself is valid JSON Schema."""
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_is_that_of_the_types() -> None:
    """After a change of a type, `python tools/results_schema.py` writes the schema again."""
    root = Path(__file__).parents[3]
    made = subprocess.run(
        [sys.executable, "-c", "import results_schema; print(results_schema.text(), end='')"],
        cwd=root / "tools", env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    stored = (root / "docs" / "reference" / "results.schema.json").read_text(encoding="utf-8")
    assert stored == made, "run: python tools/results_schema.py"


ORDER = Part(name="order-agrees", verdict=Verdict.UNKNOWN, reason="The budget ended.", extra=True)
FINE = Part(name="linearizable", verdict=Verdict.VALID, reason="Fine.")


@pytest.mark.parametrize(
    ("parts", "verdict", "reason"),
    [
        ([FINE, ORDER], Verdict.VALID, "Fine. Not decided: order-agrees."),
        ([FINE, replace(ORDER, verdict=Verdict.VALID)], Verdict.VALID, "Fine."),
        ([FINE, replace(ORDER, verdict=Verdict.INVALID, reason="No.")], Verdict.INVALID, "No."),
        ([replace(FINE, verdict=Verdict.UNKNOWN, reason="Who knows."), ORDER], Verdict.UNKNOWN, "Who knows."),
        ([replace(FINE, verdict=Verdict.INVALID, reason="Stale."), ORDER], Verdict.INVALID, "Stale."),
        ([FINE, replace(ORDER, extra=False)], Verdict.UNKNOWN, "The budget ended."),
        ([ORDER], Verdict.UNKNOWN, "The budget ended."),
    ],
)
def test_an_extra_part_that_is_unknown_leaves_the_verdict_to_the_others(
    valid_record: RunRecord, parts: list[Part], verdict: Verdict, reason: str
) -> None:
    """Such a part is shown. If it is invalid, so is the run. If no other part exists, the run is unknown."""
    assert (verdict_of(parts), reason_of(parts)) == (verdict, reason)
    document = build(replace(valid_record, parts=parts))
    validate(document)
    stored = json.loads(json.dumps(document))
    assert verdict_of(parts_from(stored)) is verdict
    assert [part.extra for part in parts_from(stored)] == [part.extra for part in parts]


def test_an_extra_part_is_said_by_true_or_false(valid_record: RunRecord) -> None:
    """A value that is not a boolean is refused."""
    document = build(replace(valid_record, parts=[FINE, ORDER]))
    document["parts"]["order-agrees"]["extra"] = "yes"
    with pytest.raises(BadRecord, match=r"parts\.order-agrees\.extra"):
        parts_from(document)


def test_documents_keep_to_the_schema(valid_record: RunRecord, stale_record: RunRecord) -> None:
    """A valid run, an invalid one, and one with almost no data."""
    for record in (valid_record, stale_record, replace(valid_record, parts=(), faults=(), operations=(), sightings=())):
        validate(build(record))


@given(st.lists(PARTS, max_size=4), st.lists(FAULTS, max_size=3), st.lists(SIGHTINGS, max_size=3), POSITIONS)
def test_any_record_keeps_to_the_schema_and_comes_back(
    valid_record: RunRecord,
    parts: list[Part],
    faults: list[FaultRecord],
    sightings: list[Sighting],
    positions: Positions,
) -> None:
    """Parts, faults, sightings and positions are read back exactly, to the nanosecond."""
    document = build(
        replace(valid_record, operations=(), parts=parts, faults=faults, sightings=sightings, positions=positions)
    )
    validate(document)
    stored = json.loads(json.dumps(document))
    assert list(checked(stored, "here")["parts"]) == list(document["parts"])
    assert [part.verdict for part in parts_from(stored)] == [part.verdict for part in parts]
    assert [part.reason for part in parts_from(stored)] == [part.reason for part in parts]
    assert [part.details for part in parts_from(stored)] == [written(part.details) for part in parts]
    observed = observations_from(stored)
    assert observed.faults == faults
    assert observed.sightings == sightings
    assert observed.positions == positions


def test_leaders_of_the_final_reads_are_not_counted(valid_record: RunRecord) -> None:
    """Labrys itself moves the leadership to read each node, so the run's count ends with its workload."""
    seen = [
        Sighting(time_ns=0, node="n1", role="leader", term=1, until_ns=50 * 10**9),
        Sighting(time_ns=70 * 10**9, node="n2", role="leader", term=2, until_ns=80 * 10**9),
    ]
    document = build(replace(valid_record, sightings=seen, timings={"workload": 60.0}))
    assert document["leadership"] == {"changes": 0, "leaders": ["n1"], "terms": [1]}
    assert len(document["sightings"]) == 2
    assert [sighting.node for sighting in workload_sightings_from(document)] == ["n1"]


@pytest.mark.parametrize("applied", [{"n1": [1]}, {"n1": [1, "2"]}, {"n1": [1, True]}])
def test_positions_that_do_not_fit_are_refused(valid_record: RunRecord, applied: dict[str, Any]) -> None:
    """Each node has one whole number, or null, for each poll."""
    with pytest.raises(BadRecord, match=r"positions.*: expected"):
        observations_from({**build(valid_record), "positions": {"time_ns": [0, 1], "applied": applied}})


def test_what_all_left_out_is_told(valid_record: RunRecord) -> None:
    """results.json and test.json name each kind with the reason."""
    test = replace(valid_record.test, left_out={"packet-delay": "n1 lacks netem", "crash": "no room"})
    document = build(replace(valid_record, test=test))
    validate(document)
    assert document["left_out"] == test.left_out
    stored = json.loads(json.dumps(as_document(test)))
    assert from_document(stored, "here") == test
    stored["left_out"] = [3]
    with pytest.raises(BadRecord, match=r"here: left_out: expected an object, found \[3\]"):
        from_document(stored, "here")


def test_the_worst_part_decides_and_speaks() -> None:
    """Invalid before unknown before valid. The message is that of the first deciding part; the others are named."""
    parts = [
        Part(name="a", verdict=Verdict.VALID, reason="fine."),
        Part(name="b", verdict=Verdict.UNKNOWN, reason="who knows."),
        Part(name="c", verdict=Verdict.INVALID, reason="wrong."),
        Part(name="d", verdict=Verdict.INVALID, reason="also wrong."),
    ]
    assert verdict_of(parts) is Verdict.INVALID
    assert reason_of(parts) == "wrong. Also invalid: d."
    assert reason_of(parts[:2]) == "who knows."
    assert reason_of(parts[:1]) == "fine."


def test_nothing_judged_is_unknown() -> None:
    """A run without parts is never valid."""
    assert verdict_of([]) is Verdict.UNKNOWN
    assert reason_of([]) == "Nothing was judged."


def test_two_parts_of_one_name_are_both_kept(valid_record: RunRecord) -> None:
    """Neither may hide the other."""
    parts = [Part(name="p", verdict=Verdict.VALID, reason=""), Part(name="p", verdict=Verdict.INVALID, reason="bad")]
    document = build(replace(valid_record, parts=parts))
    assert [(name, part["valid"]) for name, part in document["parts"].items()] == [("p", True), ("p-2", False)]
    assert document["valid"] is False


def test_only_an_invalid_part_gives_a_counterexample(stale_record: RunRecord, valid_record: RunRecord) -> None:
    """A counterexample in an unknown part does not count."""
    assert build(stale_record)["counterexample"]["key"] == "k0"
    part = Part(name="p", verdict=Verdict.UNKNOWN, reason="", details={"counterexample": {"operations": [1]}})
    assert build(replace(valid_record, parts=[part]))["counterexample"] is None


def test_counts_add_up(valid_record: RunRecord) -> None:
    """By type, by function, and in total."""
    counts = build(valid_record)["counts"]
    assert counts["operations"] == len(valid_record.operations)
    assert counts["operations"] == sum(counts[kind] for kind in OUTCOMES)
    for kind in OUTCOMES:
        assert counts[kind] == sum(by_type[kind] for by_type in counts["by_f"].values())


def test_refusals_are_not_failures(valid_record: RunRecord) -> None:
    """An answer that names the leader has its own count, in total and by function."""
    refusal = replace(valid_record.operations[0], type=OpType.FAIL, error="not-leader: n3 leads")
    other = replace(refusal, error="no-leader")
    test = replace(valid_record.test, refusals=("not-leader",))
    counts = build(replace(valid_record, test=test, operations=[refusal, refusal, other]))["counts"]
    assert (counts["fail"], counts["refused"]) == (1, 2)
    assert counts["by_f"][refusal.f] == {"ok": 0, "info": 0, "fail": 1, "refused": 2}
    assert outcomes(counts) == "0 ok, 1 fail, 0 info, 2 refused"


def test_what_json_cannot_say_becomes_text() -> None:
    """Numbers of other libraries stay numbers, and no value is dropped."""
    value = {
        1: float("inf"),
        "n": np.int64(7),
        "f": np.float64(0.5),
        "s": {2, 1},
        "t": (None, b"x"),
        "e": Verdict.VALID,
    }
    assert written(value) == {"1": "inf", "n": 7, "f": 0.5, "s": [1, 2], "t": [None, "b'x'"], "e": "valid"}


def test_what_a_list_needs_comes_first(valid_record: RunRecord) -> None:
    """Verdict, message, seed and reproduce line come before everything that can be long."""
    assert list(build(valid_record))[:7] == ["format", "version", "valid", "reason", "test", "seed", "reproduce"]


@pytest.mark.parametrize("document", [None, [], {}, {"format": "other"}, {"format": "labrys-results", "version": 99}])
def test_a_foreign_document_is_refused(document: Any) -> None:
    """The error names the file and the expected content."""
    with pytest.raises(BadRecord, match=r"here: expected"):
        checked(document, "here")


@pytest.mark.parametrize("version", [1, 2, 99])
def test_a_document_of_another_version_is_refused(valid_record: RunRecord, version: int) -> None:
    """The error names the version, and what to do."""
    with pytest.raises(BadRecord, match=f"here: expected version 3, got {version}; use the labrys that wrote it"):
        checked({**build(valid_record), "version": version}, "here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed(Sighting):
    """A sighting with an observation more: a field, and nothing else."""

    weight: Annotated[int, Meta(ge=0)]


def test_a_new_observation_is_a_field_in_one_place() -> None:
    """A field of a type in `Observations` is written, read back, checked, and refused by the name of its place."""
    seen = [Weighed(time_ns=1, node="n1", role=None, weight=3)]
    document = json.loads(json.dumps(written(seen)))
    assert document[0]["weight"] == 3
    assert read(document, list[Weighed], "sightings") == seen
    with pytest.raises(InputError, match=r"sightings\[0\]\.weight: expected a whole number of at least 0, found -1"):
        read([document[0] | {"weight": -1}], list[Weighed], "sightings")


@pytest.mark.parametrize("missing", [field.name for field in fields(Observations)])
def test_a_document_without_an_observation_is_refused(valid_record: RunRecord, missing: str) -> None:
    """What is not there is not taken for what did not happen."""
    document = build(valid_record)
    del document[missing]
    with pytest.raises(BadRecord, match=f"the member {missing} is missing"):
        observations_from(document)


def test_a_test_comes_back_from_its_document(valid_record: RunRecord) -> None:
    """test.json restores the run's description, with all bits of the seed."""
    test = valid_record.test
    assert from_document(json.loads(json.dumps(as_document(test))), "here") == test


@pytest.mark.parametrize(
    "change", [{"seed": "x"}, {"nodes": 3}, {"started_utc": "noon"}, {"versions": None}, {"version": 1}, {"format": 1}]
)
def test_a_damaged_test_is_refused(valid_record: RunRecord, change: dict[str, Any]) -> None:
    """Without a valid file there is no report."""
    with pytest.raises(BadRecord, match="here"):
        from_document({**as_document(valid_record.test), **change}, "here")


def test_the_phases_are_read_back_in_the_order_of_their_starts(valid_record: RunRecord) -> None:
    """The document has them in this order."""
    document = build(replace(valid_record, phases=list(reversed(valid_record.phases))))
    phases = observations_from(document).phases
    assert {(phase.name, phase.node) for phase in phases} == {(phase.name, phase.node) for phase in valid_record.phases}
    assert [phase.start_s for phase in phases] == sorted(phase.start_s for phase in phases)


@pytest.mark.parametrize(
    "phase",
    [
        {"name": "start", "node": None, "start_s": 2.0, "end_s": 1.0},
        {"name": "start", "node": None, "start_s": -1.0, "end_s": 1.0},
        {"name": 1, "node": None, "start_s": 0.0, "end_s": 1.0},
        {"name": "start", "node": 1, "start_s": 0.0, "end_s": 1.0},
        {"name": "start", "start_s": 0.0, "end_s": "x"},
        [],
    ],
)
def test_a_foreign_phase_is_checked(valid_record: RunRecord, phase: Any) -> None:
    """Types and ranges, and an end before its start."""
    with pytest.raises(BadRecord, match="phases"):
        observations_from({**build(valid_record), "phases": [phase]})


def test_thresholds_are_in_the_document(valid_record: RunRecord) -> None:
    """Each has its number, and whether the run kept it; a control node that was behind makes a crossed one unknown."""
    limits = ("operations > 0", "p99_ms < 0", "availability_during_faults >= 0")
    test = replace(valid_record.test, thresholds=tuple(map(read_threshold, limits)))
    record = replace(valid_record, test=test, faults=())
    document = build(record)
    validate(document)
    assert [row["threshold"] for row in document["thresholds"]] == list(limits)
    assert [row["kept"] for row in document["thresholds"]] == [True, False, False]
    assert document["thresholds"][0]["measured"] == len(record.operations)
    assert document["thresholds"][2]["measured"] is None
    shown = shown_from(document)
    assert (shown.verdict, shown.alone, shown.words) == (
        Verdict.VALID,
        Verdict.INVALID,
        "valid, crossed a threshold",
    )
    late = Part(name="control-node", verdict=Verdict.UNKNOWN, reason="Late.", extra=True)
    behind = build(replace(record, parts=[*record.parts, late]))
    validate(behind)
    assert [row["kept"] for row in behind["thresholds"]] == [True, "unknown", "unknown"]
    assert shown_from(behind).alone is Verdict.UNKNOWN
    stored = json.loads(json.dumps(as_document(test)))
    assert from_document(stored, "here") == test
    stored["thresholds"] = [{**stored["thresholds"][0], "measure": "p98_ms"}]
    with pytest.raises(BadRecord, match=r"here: thresholds\[0\]: expected a threshold such as"):
        from_document(stored, "here")
