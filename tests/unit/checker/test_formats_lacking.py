"""What an event may lack in each format: the table of docs/reference/formats.md, made from the readers, holds of them."""

from __future__ import annotations

import io
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from checker.formats.missing import COMPLETION, FUNCTION, INDEX, INVOKE, KEY, PROCESS, THINGS, TIME, TYPE, VALUE, May
from checker.formats.parquet import schema
from checker.formats.read import History, read_source
from checker.formats.readers import MAY_LACK
from checker.formats.source import Source
from harness.errors import InputError
from tests.unit.checker.jepsen_blocks import Name, block_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEMBERS = {TYPE: "type", FUNCTION: "f", PROCESS: "process", VALUE: "value", INDEX: "index", TIME: "time", KEY: "key"}
WRITE = [["w", 1, 5]]
Fields = dict[str, Any]
HEADER = {"format": "labrys-history", "version": 1}


def events(thing: str, *, of_all: bool, transactional: bool) -> list[Fields]:
    """Returns the events of two operations in which something is missing: in one completion, or wherever it may be."""
    value = WRITE if transactional else 5
    all_events: list[Fields] = [
        {"index": index, "time": index, "type": kind, "process": process, "f": "txn", "value": value, "key": "k"}
        for index, (kind, process) in enumerate([("invoke", 0), ("ok", 0), ("invoke", 1), ("ok", 1)])
    ]
    if thing == COMPLETION:
        return all_events[:-1]
    if thing == INVOKE:
        return [event | {"index": event["index"] - (event["index"] > 2)} for event in all_events[:2] + all_events[3:]]
    name = MEMBERS[thing]
    # Both events of an operation have its key, and its process.
    last = all_events[-2:] if thing == PROCESS and transactional else all_events[-1:]
    lacking = all_events if of_all or thing == KEY else last
    return [
        {member: of for member, of in event.items() if member != name or event not in lacking} for event in all_events
    ]


def edn(value: Any) -> str:
    """Returns a value in EDN."""
    if isinstance(value, list):
        return f"[{' '.join(map(edn, value))}]"
    return f":{value}" if isinstance(value, str) else str(value)


def lines(some: list[Fields]) -> str:
    """Returns events as lines of JSON."""
    return "".join(json.dumps(event) + "\n" for event in some)


def of_log(some: list[Fields], prefix: str = "") -> str:
    """Returns events on lines; what is missing there has no text."""
    texts = [
        [
            str(event.get("process", "")),
            f":{event['type']}" if "type" in event else "",
            f":{event['f']}" if "f" in event else "",
            edn([event["key"], event["value"]] if "key" in event else event["value"]) if "value" in event else "",
        ]
        for event in some
    ]
    return "".join(prefix + "\t".join(text) + "\n" for text in texts)


def of_blocks(some: list[Fields]) -> bytes:
    """Returns events as maps of a test.jepsen."""
    names = {"type", "f"}
    return block_file(
        [{Name(member): Name(of) if member in names else of for member, of in event.items()} for event in some]
    )


def of_text(some: list[Fields]) -> str:
    """Returns transactions as text: the completions of events, each with a line, if all have one."""
    if some[-1].get("type") == "invoke":
        return ""
    return "".join(
        f"w(1,{event['value'][0][2] if 'value' in event else ''},{event.get('process', '')},{index})\n"
        for index, event in enumerate(some)
        if event.get("type", ("invoke", "ok")[index % 2]) == "ok"
    )


def table(some: list[Fields], path: Path) -> bytes:
    """Returns operations as a table."""
    last = some[1]
    returned = len(some) > 3
    row = {
        "run": "r",
        "key": last.get("key"),
        "process": last.get("process"),
        "f": last.get("f"),
        "type": last.get("type") if returned else "info",
        "start_ns": last.get("time"),
        "end_ns": 1 if returned else None,
        "value": json.dumps(5) if "value" in last else None,
        "invoke_index": last.get("index"),
        "complete_index": 2 if returned else None,
    }
    layout = pa.schema([field.with_nullable(nullable=True) for field in schema()], metadata=schema().metadata)
    parquet.write_table(pa.Table.from_pylist([row], layout), path)
    return path.read_bytes()


WRITERS: dict[str, Callable[[list[Fields]], str | bytes]] = {
    "`history.jsonl`": lambda some: lines([HEADER, *some]),
    "JSON Lines of other tools": lines,
    "JSON array": lambda some: json.dumps(some, indent=1),
    "EDN": lambda some: "\n".join(
        "{" + " ".join(f":{member} {edn(of)}" for member, of in event.items()) + "}" for event in some
    ),
    "logs of Jepsen, `history.txt`": of_log,
    "`test.jepsen`": of_blocks,
    "text forms of transactions": of_text,
}


def read(content: str | bytes, *, transactional: bool) -> History:
    """Reads a history."""
    data = content.encode() if isinstance(content, str) else content
    with closing(Source("h", io.BytesIO(data))) as source:
        [history] = read_source(source, transactions="rw-register" if transactional else None)
    return history


def test_the_table_is_whole() -> None:
    """Each reader says of each thing whether it may be missing, and each format has a writer here."""
    assert all(set(lacks) == set(THINGS) for lacks in MAY_LACK.values())
    assert {*WRITERS, "`operations.parquet`"} == set(MAY_LACK)


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("name", WRITERS)
def test_what_may_be_missing_is_read_and_what_may_not_is_refused(name: str, thing: str) -> None:
    """A file for each cell of the table, as a history of registers and as one of transactions."""
    may = MAY_LACK[name][thing]
    for transactional in (False, True):
        if name.startswith("text") and not transactional:
            continue
        taken = may in {May.YES, May.ALWAYS, May.OF_ALL} or (may is May.OF_TRANSACTIONS and transactional)
        of_all = may in {May.OF_ALL, May.ALWAYS}
        content = WRITERS[name](events(thing, of_all=of_all, transactional=transactional))
        if not taken:
            with pytest.raises(InputError):
                read(content, transactional=transactional)
            continue
        history = read(content, transactional=transactional)
        assert len(history.operations) == 2
        if may is May.OF_ALL:
            some = WRITERS[name](events(thing, of_all=False, transactional=transactional))
            with pytest.raises(InputError, match=f'{thing}"? as the events before have'):
                read(some, transactional=transactional)


@pytest.mark.parametrize("thing", [thing for thing in THINGS if thing != INVOKE])
def test_what_a_table_of_operations_may_lack(tmp_path: Path, thing: str) -> None:
    """A null where the column has none is refused."""
    may = MAY_LACK["`operations.parquet`"][thing]
    some = events(thing, of_all=True, transactional=False)
    data = table(some, tmp_path / "t.parquet")
    (tmp_path / "h").write_bytes(data)
    with closing(Source(str(tmp_path / "h"), io.BytesIO(data))) as source:
        if may is May.NO:
            with pytest.raises(InputError):
                read_source(source)
            return
        [history] = read_source(source)
        assert len(history.operations) == 1
