"""The history file: events are read as they were written, and the error of a bad line names the line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clock import run_virtual
from harness.errors import InfrastructureError, InputError
from harness.event_lines import MAX_LINE_BYTES, LineEncoder, decode_event, decode_object
from harness.history import FLUSH_OPS, FLUSH_S, HistoryWriter, MemoryHistory, read_history
from harness.op import NEMESIS, Op, OpType

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

HEADER = '{"format":"labrys-history","version":1}\n'
INVOKE = '{"index":0,"time":5,"type":"invoke","process":0,"f":"read","value":null}\n'

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TEXTS = st.text(max_size=10)
CLIENT_OPS = st.builds(
    Op,
    st.just(0),
    st.integers(min_value=0, max_value=2**62),
    st.sampled_from(OpType),
    st.integers(min_value=0, max_value=10**6),
    TEXTS,
    VALUES,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | st.integers(min_value=0, max_value=2**62),
    st.none() | st.just("final"),
    order=st.none() | st.integers(min_value=-(2**63), max_value=2**63 - 1),
).map(lambda op: op._replace(order=None) if op.type is OpType.INVOKE else op)


def write(history: HistoryWriter | MemoryHistory, count: int) -> None:
    """Records `count` invokes, each of another process."""
    for process in range(count):
        history.append(time_ns=process, op_type=OpType.INVOKE, process=process, f="write", value=process, key="k")


@settings(deadline=None)
@given(op=CLIENT_OPS)
def test_an_event_is_read_as_it_was_written(op: Op) -> None:
    """Each event that JSON can represent stays the same, with its types."""
    line = LineEncoder().event(op)
    read = decode_event(decode_object(line.encode()), 0)
    assert repr(read) == repr(op)


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    """It has a header, events of clients and of the nemesis, and consecutive indexes."""
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path, {"seed": 7})
    write(writer, 3)
    op = writer.append(
        time_ns=9, op_type=OpType.INFO, process=NEMESIS, f="start-kill", value={"fault": 0, "targets": []}
    )
    writer.close()
    history = read_history(path)
    assert op.index == 3
    assert history.header == {"format": "labrys-history", "version": 1, "seed": 7}
    assert history.ops == writer.ops
    assert [op.index for op in history.ops] == [0, 1, 2, 3]
    assert not history.torn


def test_null_fields_are_left_out_of_a_line(tmp_path: Path) -> None:
    """A line always has six keys, and the others only if they are not null."""
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path, {})
    writer.append(
        time_ns=1, op_type=OpType.INVOKE, process=2, f="cas", value=[1, 2], key="k0", node="n1", scheduled_ns=0
    )
    writer.close()
    assert path.read_text().splitlines()[1] == (
        '{"index":0,"time":1,"type":"invoke","process":2,"f":"cas","value":[1,2],"key":"k0","node":"n1","scheduled":0}'
    )


def test_a_history_is_never_overwritten(tmp_path: Path) -> None:
    """An existing file is an error, and stays the same."""
    path = tmp_path / "history.jsonl"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        HistoryWriter(path, {})
    assert path.read_text() == "mine"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error of a missing folder has the path."""
    with pytest.raises(InfrastructureError, match=r"nowhere/history\.jsonl"):
        HistoryWriter(tmp_path / "nowhere" / "history.jsonl", {})


def test_events_reach_the_file_by_number_and_by_time(tmp_path: Path) -> None:
    """The 256th event is written at once, and a single one within a second."""
    path = tmp_path / "history.jsonl"

    async def main() -> tuple[int, int, int]:
        writer = HistoryWriter(path, {})
        write(writer, FLUSH_OPS + 1)
        by_number = len(read_history(path).ops)
        await asyncio.sleep(FLUSH_S * 0.9)
        early = len(read_history(path).ops)
        await asyncio.sleep(FLUSH_S * 0.2)
        by_time = len(read_history(path).ops)
        writer.close()
        return by_number, early, by_time

    assert run_virtual(main()) == (FLUSH_OPS, FLUSH_OPS, FLUSH_OPS + 1)


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"bytes", object(), [float("inf")]])
def test_a_value_that_json_cannot_represent_is_refused(tmp_path: Path, value: Any) -> None:
    """It is not recorded, and the indexes have no gap."""
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path, {})
    with pytest.raises(InputError, match="that JSON can represent"):
        writer.append(time_ns=0, op_type=OpType.OK, process=0, f="read", value=value)
    write(writer, 1)
    writer.close()
    assert [op.index for op in read_history(path).ops] == [0]


def test_a_value_that_is_too_deep_or_too_long_is_refused(tmp_path: Path) -> None:
    """A reader would refuse it, too."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    writer = HistoryWriter(tmp_path / "history.jsonl", {})
    for value in (deep, "x" * MAX_LINE_BYTES, 10**5000):
        with pytest.raises(InputError):
            writer.append(time_ns=0, op_type=OpType.OK, process=0, f="read", value=value)
    while deep:  # the interpreter frees a deep list recursively
        deep = deep[0]
    assert writer.ops == []


@pytest.fixture
def full_disk() -> AbstractContextManager[None]:
    """Returns a context in which no file of this process can grow beyond a few kilobytes."""

    @contextlib.contextmanager
    def limited() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited()


def test_a_full_disk_ends_the_history_with_a_clear_error(
    tmp_path: Path, full_disk: AbstractContextManager[None]
) -> None:
    """The error names the file, the file has only whole lines, and no other event is recorded."""
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path, {})
    with full_disk, pytest.raises(InfrastructureError, match=r"history\.jsonl.*Is the disk full"):
        write(writer, 1000)
    recorded = len(writer.ops)
    with pytest.raises(InfrastructureError, match=r"history\.jsonl"):
        write(writer, 1)
    with pytest.raises(InfrastructureError, match=r"history\.jsonl"):
        writer.close()
    history = read_history(path)
    assert not history.torn
    assert 0 < len(history.ops) < recorded == len(writer.ops)
    assert history.ops == writer.ops[: len(history.ops)]


def test_the_next_call_raises_a_failure_of_the_timer(tmp_path: Path, full_disk: AbstractContextManager[None]) -> None:
    """A flush in the background has no caller."""

    async def main() -> None:
        writer = HistoryWriter(tmp_path / "history.jsonl", {})
        write(writer, FLUSH_OPS - 1)
        await asyncio.sleep(2 * FLUSH_S)
        with pytest.raises(InfrastructureError, match="Is the disk full"):
            write(writer, 1)

    with full_disk:
        run_virtual(main())


def test_a_closed_history_takes_no_event(tmp_path: Path) -> None:
    """A second close does nothing; a later append is an error."""
    writer = HistoryWriter(tmp_path / "history.jsonl", {})
    writer.close()
    writer.close()
    with pytest.raises(InfrastructureError, match="closed"):
        write(writer, 1)


def test_only_the_last_line_can_be_torn(tmp_path: Path) -> None:
    """A file that is cut at any byte after its header gives all whole events, and `torn` if a part is left out."""
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path, {})
    write(writer, 3)
    writer.close()
    whole = path.read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == ord("\n")]
    cut = tmp_path / "cut.jsonl"
    for size in range(ends[0], len(whole) + 1):
        cut.write_bytes(whole[:size])
        history = read_history(cut)
        # A line that lacks only its newline is whole.
        lines = sum(end - 1 <= size for end in ends[1:])
        assert history.ops == writer.ops[:lines]
        assert history.torn == (size not in ends and size + 1 not in ends)


BAD_LINES = {
    "": "expected a JSON object",
    "nonsense": "expected a JSON object",
    "[1]": "expected a JSON object",
    "[" * 100_000: "expected a JSON object",
    '{"index":0,"time":NaN,"type":"invoke","process":0,"f":"read","value":null}': "NaN",
    INVOKE.strip().replace('"index":0', '"index":1'): "expected index 0, found 1",
    INVOKE.strip().replace('"index":0', '"index":false'): "a position in 'index'",
    INVOKE.strip().replace('"time":5', '"time":-1'): "nanoseconds since the run's start in 'time', found '-1'",
    INVOKE.strip().replace('"time":5', '"time":1.5'): "nanoseconds since the run's start in 'time'",
    INVOKE.strip().replace('"invoke"', '"began"'): "one of invoke, ok, fail, info in 'type', found 'began'",
    INVOKE.strip().replace('"invoke"', "[]"): "in 'type'",
    INVOKE.strip().replace('"process":0', '"process":"p"'): "a number or 'nemesis' in 'process'",
    INVOKE.strip().replace('"process":0', '"process":"nemesis"'): "expected type 'info' for the nemesis",
    INVOKE.strip().replace('"read"', "null"): "the name of a function in whole characters in 'f'",
    INVOKE.strip().replace('"value":null', '"key":3,"value":null'): "a string of whole characters or null in 'key'",
    INVOKE.strip().replace('"value":null', '"nod":"n1","value":null'): "unknown key 'nod'",
    INVOKE.strip().replace(',"value":null', ""): "expected the key 'value'",
}


@pytest.mark.parametrize(("line", "expected"), BAD_LINES.items(), ids=range(len(BAD_LINES)))
def test_a_bad_line_is_named(tmp_path: Path, line: str, expected: str) -> None:
    """The error has the file, the line number, and the expectation."""
    path = tmp_path / "history.jsonl"
    path.write_text(HEADER + line + "\n" + INVOKE)
    with pytest.raises(InputError) as raised:
        read_history(path)
    assert str(raised.value).startswith(f"{path}:2: ")
    assert expected in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_bytes_that_are_not_text_are_named(tmp_path: Path) -> None:
    """A line that is not UTF-8 is a bad line."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(HEADER.encode() + b"\xff\xfe\n")
    with pytest.raises(InputError, match=r"history\.jsonl:2: expected a JSON object"):
        read_history(path)


def test_an_endless_line_is_not_read(tmp_path: Path) -> None:
    """A line has a maximum length."""
    path = tmp_path / "history.jsonl"
    path.write_text(HEADER + '{"index":0,' + " " * MAX_LINE_BYTES)
    with pytest.raises(InputError, match=":2: expected a line of at most"):
        read_history(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "found an empty file"),
        ('{"format":"labr', ":1: expected a JSON object"),
        (INVOKE, ":1: expected the header of a history"),
        ('{"format":"labrys-history","version":2}\n', ":1: expected version 1 of the format, found 2"),
    ],
)
def test_a_file_that_is_no_history_is_named(tmp_path: Path, text: str, expected: str) -> None:
    """A history needs its header."""
    path = tmp_path / "history.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_history(path)
    assert expected in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The error has the path."""
    with pytest.raises(InputError, match=r"history\.jsonl: the history cannot be read: No such file"):
        read_history(tmp_path / "history.jsonl")


def test_a_header_that_json_cannot_represent_creates_no_file(tmp_path: Path) -> None:
    """The header is encoded before the file is made."""
    path = tmp_path / "history.jsonl"
    with pytest.raises(InputError):
        HistoryWriter(path, {"seed": object()})
    assert not path.exists()


def test_memory_has_the_same_events_as_a_file(tmp_path: Path) -> None:
    """Both recorders make the same events."""
    writer, memory = HistoryWriter(tmp_path / "history.jsonl", {}), MemoryHistory()
    write(writer, 5)
    write(memory, 5)
    assert memory.ops == writer.ops


def test_lines_are_ascii(tmp_path: Path) -> None:
    """All other characters are escaped, so a line has as many bytes as characters."""
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path, {})
    writer.append(time_ns=0, op_type=OpType.INFO, process=0, f="read", value="käse \ud800 \n")
    writer.close()
    line = path.read_bytes().splitlines()[1]
    assert line.isascii()
    assert json.loads(line)["value"] == "käse \ud800 \n"
    assert read_history(path).ops == writer.ops
