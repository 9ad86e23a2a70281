"""A history as rows: the pairing of `labrys check`, where each bad event is a row and the rest goes on."""

from __future__ import annotations

import io
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.errors import BadHistory
from checker.formats.log_lines import CONSOLE_LOG
from checker.formats.parquet import NAMES
from checker.formats.readers import EDN, JSONL
from checker.formats.source import Source
from checker.values import json_text
from harness.event_lines import LineEncoder
from harness.op import Op, OpType
from harness.pairing import Event, Pairing
from results.pipeline.read import events as reading
from results.pipeline.read.events import BAD, BARE, END, FAULT, OPERATION, TORN, read_events, read_plain
from tests.unit.checker.test_formats_plain import bare, console_log, damaged, edn, history, lines

if TYPE_CHECKING:
    from pathlib import Path

HEADER = b'{"format":"labrys-history","version":1}\n'
HISTORIES = 600
PROCESSES = 3


def rows_of(content: bytes, kind: str = "jsonl") -> list[dict[str, Any]]:
    """Returns the rows of a history."""
    source = Source("h", io.BytesIO(content))
    return [row for batch in read_events(source, "r", kind, keyed=None) for row in batch.to_pylist()]


def lines_of(ops: list[Op]) -> list[bytes]:
    """Returns the lines of events."""
    encoder = LineEncoder()
    return [encoder.event(op).encode() + b"\n" for op in ops]


def told(content: bytes) -> list[tuple[str, int | None, str]]:
    """Returns the kind, the line and the reason of all rows but operations and the last."""
    return [(row["row"], row["line"], row["reason"]) for row in rows_of(content) if row["row"] not in {OPERATION, END}]


def random_events(rng: random.Random, *, careless: float) -> list[Event]:
    """Returns a history whose processes sometimes break the rules."""
    events: list[Event] = []
    begun: dict[int, Op] = {}
    ended: set[int] = set()
    time_ns = 0
    for index in range(rng.randrange(1, 24)):
        process = rng.randrange(PROCESSES)
        wrong = rng.random() < careless
        time_ns = max(0, time_ns + (rng.randrange(-3, 3) if wrong else rng.randrange(3)))
        before = begun.get(process)
        if process in ended and not wrong:
            process = PROCESSES + index
            before = None
        if before is None or (wrong and rng.random() < 0.3):
            f = rng.choice(["read", "write", "cas"])
            value: Any = {"read": None, "write": rng.randrange(5), "cas": [rng.randrange(3), rng.randrange(3)]}[f]
            kind, key, node = OpType.INVOKE, rng.choice([None, "a", "b"]), rng.choice([None, "n1"])
            op = Op(
                index,
                time_ns,
                kind,
                process,
                f,
                value,
                key,
                node,
                None,
                rng.choice([None, 7]),
                rng.choice([None, "final"]),
            )
            begun[process] = op
            has_value = True
        else:
            kind = rng.choice([OpType.OK, OpType.FAIL, OpType.INFO])
            f, value, key = before.f, before.value, before.key
            has_value = kind is OpType.OK or rng.random() < 0.7
            if kind is OpType.OK and f == "read":
                value = rng.choice([None, 3, "x"])
            if wrong:
                f, key = rng.choice([f, "read"]), rng.choice([key, "a", None])
                value = rng.choice([value, 9])
            if not has_value:
                value, key = None, rng.choice([None, key])
            error, order = rng.choice([None, "timeout"]), rng.choice([None, 5, -(2**63)])
            op = Op(index, time_ns, kind, process, f, value, key, error=error, order=order)
            begun.pop(process, None)
            ended |= {process} if kind is OpType.INFO else set()
        events.append(Event(index + 2, op, has_value))
    return events


def test_each_breach_is_a_row_and_without_one_it_is_pairing(monkeypatch: Any) -> None:
    """Batches of any size have the operations of pairing. If pairing refuses a history, its line has the first bad row."""
    rng = random.Random(20)
    refused = 0
    for number in range(HISTORIES):
        events = random_events(rng, careless=(number % 3) / 20)
        monkeypatch.setattr(reading, "_BATCH_ROWS", rng.choice([1, 2, 5, 1 << 13]))
        monkeypatch.setattr(reading, "_numbered", lambda _, events=events, **__: iter(events))
        rows = rows_of(b"\n")
        pairing = Pairing(partial(BadHistory, "h"))
        breach = None
        try:
            for event in events:
                pairing.add(event)
        except BadHistory as error:
            breach = (error.line, error.reason)
        if breach is not None:
            refused += 1
            assert next((row["line"], row["reason"]) for row in rows if row["row"] == BAD) == breach
            continue
        assert [row["row"] for row in rows if row["row"] != OPERATION] == [END]
        operations = sorted((row for row in rows if row["row"] == OPERATION), key=lambda row: row["invoke_index"])
        expected = [
            {
                name: json_text(getattr(operation, name)) if name in {"value", "result"} else getattr(operation, name)
                for name in NAMES[1:]
            }
            for operation in pairing.finish()
        ]
        assert [{name: row[name] for name in NAMES[1:]} for row in operations] == expected
    assert HISTORIES / 20 < refused < HISTORIES / 2


def test_a_breach_costs_no_other_operation() -> None:
    """The wrongly completed invoke stays open, a refused invoke is not completed, and the others are paired as usual."""
    ops = [
        Op(0, 0, OpType.INVOKE, 1, "write", 1),
        Op(1, 1, OpType.OK, 1, "read", 1),
        Op(2, 2, OpType.INVOKE, 2, "write", 2),
        Op(3, 3, OpType.OK, 2, "write", 2),
        Op(4, 4, OpType.INVOKE, 3, "write", 3),
        Op(5, 5, OpType.INVOKE, 3, "write", 4),
        Op(6, 6, OpType.OK, 3, "write", 4),
    ]
    content = HEADER + b"".join(lines_of(ops))
    operations = [row for row in rows_of(content) if row["row"] == OPERATION]
    kept = {row["invoke_index"]: (row["type"], row["complete_index"]) for row in operations}
    assert kept == {0: ("info", None), 2: ("ok", 3), 4: ("info", None)}
    assert [(line, reason) for _, line, reason in told(content)] == [
        (3, "expected the completion of 'write' of line 2, found 'read'"),
        (
            7,
            "process 3 invokes 'write', but its 'write' of line 6 is still open; a process has one operation at a time",
        ),
        (8, "process 3 completes 'write', whose invoke is in quarantine"),
    ]
    assert rows_of(content)[-1]["invokes"] == 4


def test_lines_are_whole_and_in_order() -> None:
    """A missing, a doubled, and a binary line each have one row with their line; only the last line can be torn."""
    ops = [
        Op(2 * number + after, number, (OpType.INVOKE, OpType.OK)[after], number, "write", 1)
        for number in range(4)
        for after in (0, 1)
    ]
    lines = lines_of(ops)
    whole = HEADER + b"".join(lines)
    assert told(whole) == []
    rule = "expected the indexes from 0 on, each once and in their order; found"
    assert told(HEADER + b"".join([*lines[:3], *lines[4:]])) == [(BAD, 5, f"{rule} 4 after 2")]
    assert told(HEADER + b"".join([*lines[:4], *lines[3:]])) == [(BAD, 6, f"{rule} 3 after 3")]
    ((kind, line, reason),) = told(HEADER + b"".join([*lines[:4], b"\xff\n", *lines[4:]]))
    assert (kind, line) == (BAD, 6)
    assert reason.startswith("expected a JSON object")
    ((kind, line, _),) = told(whole[:-20])
    assert (kind, line) == (TORN, 9)
    assert [kind for kind, *_ in told(whole.removeprefix(HEADER)[:-20])] == [BAD, BAD], "the torn line and the header"
    assert told(HEADER + HEADER) == [(BAD, 1, "expected one header at the beginning, found 2")]


def test_a_line_that_is_too_long_is_one_bad_line(monkeypatch: Any) -> None:
    """The lines after it keep their numbers."""
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 200)
    [line] = lines_of([Op(0, 0, OpType.INVOKE, 0, "write", 1)])
    rows = rows_of(HEADER + b"x" * 1000 + b"\n" + line + b"nonsense\n")
    assert [(row["row"], row["line"]) for row in rows if row["row"] == BAD] == [(BAD, 2), (BAD, 4)]


def test_nothing_is_read_after_a_bad_event_of_edn() -> None:
    """The operations before it are read, and the row says that the rest is missing."""
    rows = rows_of(b"{:index 0 :type :invoke :process 0 :f :read :value nil :time 1}\n{:type 5}\n", "edn")
    assert [row["row"] for row in rows] == [OPERATION, BAD, END]
    assert rows[1]["reason"].startswith("expected a :type")
    assert rows[1]["reason"].endswith("; nothing after it was read")
    assert rows[1]["line"] == 2


WRITERS = {JSONL: lambda ops, rng, _: lines(ops, rng), BARE: bare, EDN: edn, CONSOLE_LOG: console_log}


@pytest.mark.parametrize("kind", WRITERS)
def test_the_kernel_reads_the_same_rows_or_none(tmp_path: Path, kind: str) -> None:
    """A plain history has the rows that it has event by event; one with a bad row is left to the reader of events."""
    rng = random.Random(f"plain rows {kind}")
    plain, faults = 0, 0
    for _ in range(HISTORIES // 4):
        ops = history(rng)
        text = WRITERS[kind](ops, rng, tmp_path / "history.edn")
        for content in (text, damaged(text, rng), damaged(text, rng)):
            keyed = rng.choice([None, False, True])
            source = Source("h", io.BytesIO(content))
            batches = read_plain(source, "r", kind, keyed=keyed)
            # It is at its beginning again.
            slow = [row for batch in read_events(source, "r", kind, keyed=keyed) for row in batch.to_pylist()]
            if batches is not None:
                rows = [row for batch in batches for row in batch.to_pylist()]
                assert sorted(rows, key=_place) == sorted(slow, key=_place)
                assert {row["row"] for row in rows} <= {OPERATION, FAULT, END}
                faults += any(row["row"] == FAULT for row in rows)
                plain += 1
    assert plain > HISTORIES / 30
    assert (faults > plain / 12) is (kind == JSONL)


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["row"], row["invoke_index"] or 0
