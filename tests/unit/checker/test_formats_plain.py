"""The kernel reads a plain history as the readers of events do, or leaves it to them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import Request, check_file
from checker.formats import read
from checker.formats.jepsen import write_history
from checker.formats.plain import read_edn, read_jsonl
from checker.formats.read import EDN, JSONL, read_source
from checker.formats.source import Source
from checker.models import names
from checker.presentation import as_json
from checker.search.deciders import Wanted
from harness.errors import InputError, LabrysError
from harness.event_lines import LineEncoder
from harness.op import NEMESIS, Op, OpType
from harness.pairing import events_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HISTORIES = 150
DAMAGES = 12
CHECKS = 30
TIMES = {"seconds", "read_seconds", "steps"}
VALUES: list[Any] = [
    None,
    0,
    1,
    -3,
    10**17,
    10**18,
    10**30,
    [1, 2],
    [0, None],
    [1, 2, 3],
    [],
    "a",
    "é",
    'q"\\',
    True,
    2.5,
]
VALUES += [-0.0, {"x": 1, "b": [2]}, ["k", 1], [["r", "x", None]], [-1, 10**18], ":a", "nil"]
SIGNS = '0123456789-+.eE"\\ ,:;{}[]()#_\n\tntaf:kNé\x00'
HEADER = '{"format":"labrys-history","version":1}'


def history(random: Random) -> list[Op]:
    """Returns the events of a few processes and the nemesis; the value of a failed operation stays."""
    values = random.sample(VALUES, random.randint(1, len(VALUES)))
    keys: list[str | None] = random.choice([[None], [None], ["k1", "k2"], ["k1", "é", 'a"b'], [None, "k"]])
    functions = random.choice([["read", "write", "cas"], ["write", "cas", "do it"], ["read"]])
    ops: list[Op] = []
    open_ops: dict[int, Op] = {}
    fresh, time_ns = 0, 0
    for index in range(random.randint(0, 40)):
        time_ns += random.randint(0, 5)
        if random.random() < 0.1:
            ops.append(Op(index, time_ns, OpType.INFO, NEMESIS, "start-kill", random.choice(VALUES)))
            continue
        if open_ops and random.random() < 0.5:
            process = random.choice(list(open_ops))
            invoke = open_ops.pop(process)
            kind = random.choice([OpType.OK, OpType.OK, OpType.FAIL, OpType.INFO])
            more: dict[str, Any] = {"value": random.choice(values)} if kind is OpType.OK else {}
            more |= {"error": random.choice(["timeout", 'no: "x"'])} if kind is not OpType.OK else {}
            more |= {"via": "n2"} if random.random() < 0.2 else {}
            more |= {"order": random.choice([-5, 0, 7])} if random.random() < 0.1 else {}
            ops.append(invoke._replace(index=index, time_ns=time_ns, type=kind, scheduled_ns=None, **more))
            continue
        f, key = random.choice(functions), random.choice(list(keys))
        scheduled = random.choice([None, time_ns])
        op = Op(index, time_ns, OpType.INVOKE, fresh, f, random.choice(values), key, "n1", None, scheduled)
        open_ops[fresh] = op
        fresh += 1
        ops.append(op._replace(phase=random.choice([None, "final"])))
    return ops


def lines(ops: list[Op], random: Random) -> bytes:
    """Returns a history.jsonl, also as other writers of JSON put it."""
    encoder = LineEncoder()
    text = [HEADER, *map(encoder.event, ops)]
    if random.random() < 0.2:
        text = [json.dumps(json.loads(line)) for line in text]
    return ("\n".join(text) + random.choice(["", "\n", "\n"])).encode()


def edn(ops: list[Op], random: Random, path: Path) -> bytes:
    """Returns a history in EDN, also within a vector, without its conventions, or without indexes and times."""
    write_history(path, ops)
    text = path.read_text()
    if random.random() < 0.5 and ":labrys/conventions" in text:
        begin = text.index(", :labrys/conventions")
        text = text[:begin] + text[text.index("}", begin) + 1 :]
    if random.random() < 0.3:
        text = text.replace(":index ", ":unknown ")
    if random.random() < 0.2:
        text = text.replace(":time ", ":more ")
    if random.random() < 0.3:
        text = f"[{text}]"
    if random.random() < 0.2:
        text = text.replace(", ", ",\n ")
    return text.encode()


def damaged(text: bytes, random: Random) -> bytes:
    """Returns a text with a few changed, missing or doubled parts."""
    found = text.decode()
    for _ in range(random.randint(1, 2)):
        at = random.randint(0, len(found))
        match random.randint(0, 4):
            case 0:
                found = found[:at] + random.choice(SIGNS) + found[at + 1 :]
            case 1:
                found = found[:at] + random.choice(SIGNS) + found[at:]
            case 2:
                found = found[:at] + found[at + random.randint(1, 4) :]
            case 3:
                rows = found.splitlines(keepends=True)
                row = random.randrange(len(rows)) if rows else 0
                found = "".join([*rows[:row], *rows[row + random.choice([0, 1]) :], *rows[row : row + 1]])
            case _:
                found = found[:at]
    return found.encode()


def compared(text: bytes, format_: str, *, keyed: bool | None = None) -> bool:
    """Compares both ways of reading a text, and returns whether it is plain."""
    source = Source("h", io.BytesIO(text))
    plain = read_edn(source, keyed=keyed) if format_ == EDN else read_jsonl(source)
    try:
        [slow] = read_source(Source("h", io.BytesIO(text)), keyed=keyed)
    except InputError:
        assert plain is None
        return False
    if plain is None:
        return False
    assert slow.format == format_
    assert repr(list(plain.operations)) == repr(list(slow.operations))
    assert [plain.operations[row] for row in range(len(plain.operations))] == list(slow.operations)
    assert (plain.events, plain.timed, plain.warnings) == (slow.events, slow.timed, slow.warnings)
    assert dict(plain.conventions) == dict(slow.conventions)
    return True


@pytest.mark.parametrize("format_", [JSONL, EDN])
def test_plain_histories_are_read_as_by_events(tmp_path: Path, format_: str) -> None:
    """The same operations, warnings and conventions; and every history that the readers of events refuse is left to them."""
    random = Random(f"plain {format_}")
    plain = 0
    for _ in range(HISTORIES):
        ops = history(random)
        text = lines(ops, random) if format_ == JSONL else edn(ops, random, tmp_path / "history.edn")
        plain += compared(text, format_)
        for _ in range(DAMAGES):
            compared(
                damaged(text, random), format_, keyed=random.choice([None, False, True]) if format_ == EDN else None
            )
    assert plain > HISTORIES / 3


def documents(path: Path, request_: Request) -> Any:
    """Returns the results of a check as JSON, without times and steps."""

    def strip(document: Any) -> Any:
        if isinstance(document, dict):
            return {key: strip(value) for key, value in document.items() if key not in TIMES}
        return [strip(member) for member in document] if isinstance(document, list) else document

    try:
        return strip(json.loads(as_json(list(check_file(str(path), request_)))))
    except LabrysError as error:
        return str(error)


@pytest.mark.parametrize("suffix", ["jsonl", "edn"])
@pytest.mark.parametrize("name", list(names()))
def test_a_check_from_arrays_says_what_objects_say(
    draw: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, suffix: str
) -> None:
    """The whole result is the same: verdicts of all keys, counterexamples, words, warnings, conventions and counts."""
    random = Random(f"{name} {suffix}")
    path = tmp_path / f"history.{suffix}"
    for number in range(CHECKS):
        keys: list[str | None] = [None] if number % 2 else ["a", "b", "c"]
        operations = [
            replace(
                operation,
                process=10 * place + operation.process,
                key=key,
                invoke_index=len(keys) * operation.invoke_index + place,
                complete_index=len(keys) * operation.complete_index + place,
            )
            for place, key in enumerate(keys)
            for operation in draw(name, random, unique=random.random() < 0.5)[1]
        ]
        events = [op._replace(index=place) for place, op in enumerate(events_of(operations))]
        write_history(path, events) if suffix == "edn" else path.write_bytes(lines(events, random))
        asked = Request(
            wanted=Wanted(model=name),
            initial=None,
            conventions=random.choice([{}, {"nil_read": "any"}, {"failed_cas": "observe", "crashed_dequeue": "never"}]),
            keyed=None,
            algorithm=random.choice(["auto", "auto", "wgl"]),
            time_limit_s=random.choice([None, 60.0]),
            memory_limit=None,
            cross_check=number % 3 == 0,
            certificate=False,
        )
        expected = documents(path, asked)
        monkeypatch.setattr(read, "LONG_BYTES", 0)
        assert documents(path, asked) == expected
        monkeypatch.undo()
