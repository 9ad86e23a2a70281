"""Rows of the nemesis' events become rows of faults, whatever a foreign history has written there."""

from __future__ import annotations

import pyarrow as pa

from results.pipeline.spark.records import _decode_events


def test_only_events_of_faults_are_kept() -> None:
    """What is no JSON, no object or no fault says nothing; half a character is spelled out, so that a column can hold it."""
    values = [
        '{"fault":1,"targets":["n1","\\ud800"]}',
        '{"fault":1}',
        '{"fault":"1"}',
        "[1]",
        "{",
        None,
        '{"fault":9223372036854775808}',
    ]
    rows = [
        {"run": "r", "position": place, "time_ns": 10 * place, "f": "stop-kill" if place == 1 else "start-kill", "value": value}
        for place, value in enumerate(values)
    ]  # fmt: skip
    found = [row for batch in _decode_events(iter([pa.RecordBatch.from_pylist(rows)])) for row in batch.to_pylist()]
    assert found == [
        {"run": "r", "position": 0, "time_ns": 0, "fault": 1, "kind": "kill", "begins": True, "targets": ["n1", "\\ud800"]},
        {"run": "r", "position": 1, "time_ns": 10, "fault": 1, "kind": "kill", "begins": False, "targets": []},
    ]  # fmt: skip
