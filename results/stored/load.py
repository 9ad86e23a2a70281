"""Loads the record of a run from its folder.

A run that was killed before its verdict has no `results.json`. Its history still has the operations and the faults, so the
record has these, and states that there is no verdict.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.console.members import Duration
from harness.fault_events import fault_records
from harness.history import pair, read_history
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict
from results.record.record import RunRecord, test_from_document
from results.store.errors import BadRecord
from results.stored.reading import (
    checked,
    clocks_from,
    execution_from,
    faults_from,
    member,
    other_sightings_from,
    parts_from,
    phases_from,
    positions_from,
    sightings_from,
    timings_from,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.op import Op, Value
    from results.store.store import Run

MAX_JSON_BYTES = 256 << 20


def load_record(run: Run) -> RunRecord:
    """Returns the record of a run.

    Raises:
        InputError: A file of the run is missing or malformed; the message names the file.
    """
    test = test_from_document(_read_json(run, run.test_json), str(run.test_json))
    problems: list[str] = []
    ops: Sequence[Op] = ()
    if run.has(run.history_jsonl):
        history = read_history(run.history_jsonl, within=run.path)
        ops = history.ops
        if history.torn:
            problems.append("history.jsonl ends in the middle of a line; the incomplete event is left out")
    else:
        problems.append("the run has no history.jsonl")
    operations = pair(ops)
    if not run.has(run.results_json):
        recorded = f"{len(operations)} operations were recorded"
        part = Part(
            name="completed",
            verdict=Verdict.UNKNOWN,
            reason=f"The run is not finished; so far {recorded}."
            if run.is_running()
            else f"The run ended before its verdict; {recorded}. `labrys check` can check its history.",
        )
        end_s = ops[-1].time_ns / NS_PER_S if ops else 0.0
        return RunRecord(
            test=test,
            duration_s=end_s,
            parts=[part],
            faults=fault_records(ops),
            operations=operations,
            problems=problems,
        )
    document = checked(_read_json(run, run.results_json), str(run.results_json))
    try:
        recorded_problems = member(document, "problems", list[str])
        return RunRecord(
            test=test,
            duration_s=member(document, "duration_s", Duration),
            parts=parts_from(document),
            faults=faults_from(document),
            operations=operations,
            sightings=sightings_from(document),
            other_sightings=other_sightings_from(document),
            positions=positions_from(document),
            clocks=clocks_from(document),
            execution=execution_from(document),
            timings=timings_from(document),
            phases=phases_from(document),
            problems=[*(problem for problem in recorded_problems if problem not in problems), *problems],
        )
    except BadRecord as error:
        raise BadRecord(f"{run.results_json}: {error}") from error


def _read_json(run: Run, path: Path) -> Value:
    data = run.read_bytes(path, MAX_JSON_BYTES)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{path} is not JSON: {error}") from error
