"""The kernel reads a plain history as the readers of events do, or leaves it to them."""

from __future__ import annotations

import gzip
import io
import json
from contextlib import closing
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import Request, check_file
from checker.deciders import Wanted
from checker.formats import read
from checker.formats import source as source_module
from checker.formats.jepsen import write_history
from checker.formats.log_lines import CONSOLE_LOG, HISTORY_TXT, JEPSEN_LOG
from checker.formats.plain import read_plain
from checker.formats.read import History, read_source
from checker.formats.readers import EDN, JSONL
from checker.formats.source import Source
from checker.models import names
from checker.presentation import as_json
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


def bare(ops: list[Op], random: Random, _: Path) -> bytes:
    """Returns JSON Lines without a header, with or without indexes, times and keys apart from values."""
    text = [json.loads(line) for line in lines(ops, Random(0)).decode().splitlines()[1:]]
    _thin_out(text, random)
    if random.random() < 0.2:
        for fields in text:
            fields |= {"time": -1, "index": random.choice([-1, None]), "more": random.choice([[1], "x"])}
    if random.random() < 0.3:
        for fields in text:
            if fields.get("key") is None and fields["process"] != NEMESIS:
                fields["value"] = [random.choice("kkk\u00e9"), fields["value"]]
    for fields in text:
        if fields["value"] is None and random.random() < 0.3:
            del fields["value"]
    separators = random.choice([(",", ":"), (", ", ": ")])
    return (
        "\n".join(json.dumps(fields, separators=separators) for fields in text) + random.choice(["", "\n"])
    ).encode()


def _thin_out(events: list[dict[str, Any]], random: Random) -> None:
    """Removes members that all events may lack."""
    for name in ("time", "index", "key"):
        if random.random() < 0.5:
            for fields in events:
                fields.pop(name, None)


def console_log(ops: list[Op], random: Random, _: Path) -> bytes:
    """Returns a log of Jepsen's console, with lines of other loggers and messages of the same one."""
    text = []
    gap = random.choice(["\t", " "])
    thread = random.choice(["", "[worker 3] "])
    for op in ops:
        value = "nil" if op.value is None else json.dumps(op.value).replace(",", "").replace(":", "")
        if op.error is not None and op.type is not OpType.OK:
            value = random.choice([value, ":timed-out", ":no"])
        process = ":nemesis" if op.process == NEMESIS else str(op.process)
        f = op.f.replace(" ", "-")
        text.append(f"INFO  {thread}jepsen.util - {process}{gap}:{op.type}{gap}:{f}{gap}{value}")
        if random.random() < 0.2:
            text.append(
                random.choice(["INFO  jepsen.util - Worker 3 starts", "WARN  jepsen.core - 1 :ok", "INFO x", ""])
            )
    return ("\n".join(text) + random.choice(["", "\n", "\r\n"])).encode()


def log_of_today(ops: list[Op], random: Random, _: Path, *, prefix: str) -> bytes:
    """Returns lines as Jepsen prints them today, in its log or its history.txt."""
    text = []
    for op in ops:
        value = "nil" if op.value is None else json.dumps(op.value).replace(",", "").replace(":", "")
        process = ":nemesis" if op.process == NEMESIS else str(op.process)
        line = f"{process}\t:{op.type}\t:{op.f.replace(' ', '-')}\t{value}"
        if op.error is not None and random.random() < 0.1:
            line += f"\t{op.error}"
        text.append(prefix + line)
        if prefix and random.random() < 0.2:
            text.append(random.choice(["java.lang.Exception", prefix.replace("util", "core") + "starts", ""]))
    return ("\n".join(text) + random.choice(["", "\n"])).encode()


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
    changed = text.decode()
    for _ in range(random.randint(1, 2)):
        at = random.randint(0, len(changed))
        match random.randint(0, 4):
            case 0:
                changed = changed[:at] + random.choice(SIGNS) + changed[at + 1 :]
            case 1:
                changed = changed[:at] + random.choice(SIGNS) + changed[at:]
            case 2:
                changed = changed[:at] + changed[at + random.randint(1, 4) :]
            case 3:
                rows = changed.splitlines(keepends=True)
                row = random.randrange(len(rows)) if rows else 0
                changed = "".join([*rows[:row], *rows[row + random.choice([0, 1]) :], *rows[row : row + 1]])
            case _:
                changed = changed[:at]
    return changed.encode()


class Pipe(io.BytesIO):
    """A stream that can be read only once."""

    def seekable(self) -> bool:
        """Returns False."""
        return False


def as_by_events(text: bytes, *, keyed: bool | None) -> History | None:
    """Returns the history of a text, read event by event from a pipe; None if it is refused."""
    try:
        [found] = read_source(Source("h", Pipe(text)), keyed=keyed)
    except InputError:
        return None
    assert found.plain is None
    return found


def compared(text: bytes, format_: str, *, keyed: bool | None = None) -> bool:
    """Compares both ways of reading a text, and returns whether it is plain."""
    plain = read_plain(format_, Source("h", io.BytesIO(text)), keyed=keyed)
    slow = as_by_events(text, keyed=keyed)
    if plain is None:
        return False
    assert slow is not None
    assert slow.format == format_
    assert repr(list(plain.operations)) == repr(list(slow.operations))
    assert [plain.operations[row] for row in range(len(plain.operations))] == list(slow.operations)
    assert (plain.events, plain.timed, plain.warnings) == (slow.events, slow.timed, slow.warnings)
    assert dict(plain.conventions) == dict(slow.conventions)
    return True


KINDS: dict[str, tuple[str, Callable[[list[Op], Random, Path], bytes]]] = {
    "history.jsonl": (JSONL, lambda ops, random, _: lines(ops, random)),
    "JSON Lines": (JSONL, bare),
    "EDN": (EDN, edn),
    "log": (CONSOLE_LOG, console_log),
    "log of today": (
        JEPSEN_LOG,
        partial(log_of_today, prefix="INFO [2026-01-02 03:04:05,678] jepsen worker 3 - jepsen.util "),
    ),
    "history.txt": (HISTORY_TXT, partial(log_of_today, prefix="")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_plain_histories_are_read_as_by_events(tmp_path: Path, kind: str) -> None:
    """The same operations, warnings and conventions; and every history that the readers of events refuse is left to them."""
    random = Random(f"plain {kind}")
    format_, written = KINDS[kind]
    plain = 0
    for _ in range(HISTORIES):
        text = written(history(random), random, tmp_path / "history.edn")
        plain += compared(text, format_, keyed=random.choice([None, None, True]) if kind == "JSON Lines" else None)
        for _ in range(DAMAGES):
            compared(damaged(text, random), format_, keyed=random.choice([None, False, True]))
    assert plain > HISTORIES / 3


def test_keyed_lines_have_their_keys_apart_from_values() -> None:
    """With `--keyed`, each value is a text and a value, in files with a header and without."""
    text = ""
    for index, (kind, value) in enumerate([("invoke", '["k",null]'), ("ok", '["k", [1, 2]]')]):
        text += f'{{"index":{index},"time":0,"type":"{kind}","process":0,"f":"read","value":{value}}}\n'
    for begin in ("", HEADER + "\n"):
        plain = read_plain(JSONL, Source("h", io.BytesIO((begin + text).encode())), keyed=True)
        assert plain is not None
        [operation] = plain.operations
        assert (operation.key, operation.value, operation.result) == ("k", None, [1, 2])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("trouble", ["", "no folder", "full", "no room"])
@pytest.mark.parametrize("ends_well", [False, True])
def test_long_pipes_are_read_as_files(
    monkeypatch: pytest.MonkeyPatch, packed: bool, trouble: str, ends_well: bool
) -> None:
    """As arrays, or from a copy event by event; without room for the copy, event by event from what was kept and the rest."""
    text, random = [HEADER], Random(0)
    for _ in range(2000):
        value = random.choice([random.randint(0, 9), random.randbytes(20).hex()])
        for kind in ("invoke", "ok"):
            event = {"index": len(text) - 1, "time": 0, "type": kind, "process": 0, "f": "write", "value": value}
            text.append(json.dumps(event))
    if not ends_well:
        text[-1] = "{}"
    content = "\n".join(text).encode()
    monkeypatch.setattr(source_module, "_BUFFER_BYTES", 1 << 8)
    monkeypatch.setattr(source_module, "KEPT_BYTES", 1 << 14)
    monkeypatch.setattr(read, "LONG_BYTES", 1 << 14)
    if trouble == "no room":
        monkeypatch.setattr(source_module, "room_bytes", lambda _: (1 << 14) + 1000)
    elif trouble:
        opened = ["/dev/full" if trouble == "full" else "/missing/file"]
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: open(opened[0], "wb", buffering=0))  # noqa: PTH123, SIM115
    piped, whole = Pipe(gzip.compress(content) if packed else content), Source("h", io.BytesIO(content))
    if not ends_well:
        with pytest.raises(InputError) as expected:
            read_source(whole)
        with pytest.raises(InputError) as refused, closing(Source("h", piped)) as source:
            read_source(source)
        assert str(refused.value) == str(expected.value)
        return
    with closing(Source("h", piped)) as source:
        [history_] = read_source(source)
        [expected_] = read_source(whole)
        assert (history_.plain is None) == bool(trouble)
        assert list(history_.operations) == list(expected_.operations)


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
                process=10 * index + operation.process,
                key=key,
                invoke_index=len(keys) * operation.invoke_index + index,
                complete_index=len(keys) * operation.complete_index + index,
            )
            for index, key in enumerate(keys)
            for operation in draw(name, random, unique=random.random() < 0.5)[1]
        ]
        events = [op._replace(index=index) for index, op in enumerate(events_of(operations))]
        write_history(path, events) if suffix == "edn" else path.write_bytes(lines(events, random))
        asked = Request(
            wanted=Wanted(model=name),
            conventions=random.choice([{}, {"nil_read": "any"}, {"failed_cas": "observe", "crashed_dequeue": "never"}]),
            algorithm=random.choice(["auto", "auto", "wgl"]),
            time_limit_s=random.choice([None, 60.0]),
            cross_check=number % 3 == 0,
        )
        expected = documents(path, asked)
        monkeypatch.setattr(read, "LONG_BYTES", 0)
        assert documents(path, asked) == expected
        monkeypatch.undo()
