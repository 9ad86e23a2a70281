"""Loads the record of a run from its folder.

A run that was killed before its verdict has no `results.json`. Its history still has the operations and the faults, so the
record has these, and states that there is no verdict.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from harness.fault_events import fault_records
from harness.history import pair, read_history
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict
from results.record.record import RunRecord, test_from_document
from results.store.errors import BadRecord
from results.stored.reading import checked, observations_from, parts_from

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
        seen = observations_from(document)
        seen = replace(seen, problems=[*(problem for problem in seen.problems if problem not in problems), *problems])
        observed = {field.name: getattr(seen, field.name) for field in fields(seen)}
        return RunRecord(test=test, parts=parts_from(document), operations=operations, **observed)
    except BadRecord as error:
        raise BadRecord(f"{run.results_json}: {error}") from error


def _read_json(run: Run, path: Path) -> Value:
    data = run.read_bytes(path, MAX_JSON_BYTES)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{path} is not JSON: {error}") from error
