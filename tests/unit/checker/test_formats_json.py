"""JSON of other tools: lines, arrays and objects over several lines are read as EDN is."""

from __future__ import annotations

import io
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats import json_events
from checker.formats.errors import BadHistory
from checker.formats.json_events import JsonObjects
from checker.formats.read import History, read_source
from checker.formats.readers import JSON_ARRAY, JSONL
from checker.formats.source import Source
from harness.event_lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS: list[dict[str, Any]] = [
    {"index": 9, "type": "invoke", "process": "c1", "f": "write", "value": {"a": [1, "}"]}, "more": {"x": [None]}},
    {"index": 3, "type": "info", "process": "watcher", "f": "leader", "value": "n1", "time": None},
    {"index": None, "type": "invoke", "process": 1, "f": "read", "time": -1},
    {"type": "ok", "process": "c1", "f": "write", "value": {"a": [1, "}"]}, "time": -1, "node": 3, "key": None},
    {"type": "info", "process": 1, "f": "read", "value": None, "error": ["timeout", "5 s"], "scheduled": "soon"},
    {"type": "info", "process": "nemesis", "f": None, "value": [1]},
]


def as_clojure(some: list[Any]) -> str:
    """Returns an array as Clojure's and Java's writers print it, with a space before the colon."""
    return "[ " + json.dumps(some, indent=2, separators=(",", " : "))[1:]


SPELLINGS: dict[str, Callable[[list[Any]], str]] = {
    "lines": lambda some: "\n".join(map(json.dumps, some)),
    "lines with spaces": lambda some: "".join(json.dumps(event, separators=(" , ", " : ")) + "\r\n" for event in some),
    "array": json.dumps,
    "array with spaces": as_clojure,
    "array of lines": lambda some: "[" + ",\n".join(map(json.dumps, some)) + "\n]\n",
    "objects over several lines": lambda some: "\n".join(json.dumps(event, indent=4) for event in some),
}


def read(text: str, *, keyed: bool | None = None) -> History:
    """Reads a history."""
    with closing(Source("h", io.BytesIO(text.encode()))) as source:
        [history] = read_source(source, keyed=keyed)
    return history


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_edn_accepts_json_accepts(spelling: str) -> None:
    """Clients with names, watchers, missing times and indexes, errors of several parts, and unknown members."""
    history = read(SPELLINGS[spelling](EVENTS))
    assert history.format == (JSONL if spelling.startswith("lines") else JSON_ARRAY)
    assert (history.events, history.timed, history.keyed) == (6, False, False)
    assert [(op.process, op.f, op.value, op.result, str(op.type)) for op in history.operations] == [
        ("c1", "write", {"a": [1, "}"]}, {"a": [1, "}"]}, "ok"),
        (1, "read", None, None, "info"),
    ]
    assert [(op.invoke_index, op.complete_index) for op in history.operations] == [(0, 3), (2, 4)]
    assert history.operations[1].error == "timeout: 5 s"
    assert len(history.warnings) == spelling.startswith("lines")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_keys_are_detected_as_in_edn(spelling: str) -> None:
    """By the first read of a key and null, whatever the key is; keys of different kinds stay apart."""
    values: list[Any] = [[3, None], ["3", 1], [[1], 2]]
    some = [
        {"type": "invoke", "process": index, "f": "write" if index else "read", "value": value}
        for index, value in enumerate(values)
    ]
    assert [(op.key, op.value) for op in read(SPELLINGS[spelling](some)).operations] == [
        ("3", None),
        ('"3"', 1),
        ("[1]", 2),
    ]
    with pytest.raises(BadHistory, match="because this history is taken to be keyed"):
        read(SPELLINGS[spelling]([*some, {"type": "invoke", "process": 9, "f": "read", "value": 5}]))


@pytest.mark.parametrize("spelling", ["array", "objects over several lines"])
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_objects_come_the_same_however_they_are_cut(monkeypatch: pytest.MonkeyPatch, size: int, spelling: str) -> None:
    """Pieces end within names, numbers, escapes and characters."""
    some = [{"a": [1.5e10, True, None, 'é\\"]}', 123456789012345678901234567890]}, {}, {"b": {"c": "\U0001f600" * 50}}]
    monkeypatch.setattr(json_events, "_PIECE_BYTES", size)
    with closing(Source("h", io.BytesIO(SPELLINGS[spelling](some).encode()))) as source:
        assert list(JsonObjects(source)) == list(enumerate(some, 1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 5000, "expected a JSON object"),
        ('[{"a" : ' + "[" * 100_000, "expected a JSON object"),
        ('[{"a" : NaN}]', "NaN is not JSON"),
        ('[{"a" : 1, "a" : 2}]', "the key 'a' is a duplicate"),
        ('[{"a" : "' + "x" * 10, "breaks off here"),
        ('[{"a" : "' + "x" * (2 * MAX_LINE_BYTES), "expected an object of at most"),
        ('[{"a" : 1}, {"b" 2}, ' + "x" * 300_000, "h:2: expected a JSON object, found .* at character 6"),
        (b'[{"a" : "\xff"}]', "expected UTF-8 text"),
        (b'[{"a" : "\xc3', "expected UTF-8 text"),
    ],
)
def test_what_is_no_array_of_objects_is_refused(text: str | bytes, problem: str) -> None:
    """With the number of the element, at the place of the mistake, and without reading on for long."""
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(BadHistory, match=problem), closing(Source("h", io.BytesIO(data))) as source:
        list(JsonObjects(source))
