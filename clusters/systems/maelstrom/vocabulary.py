"""The requests of each workload in Maelstrom's protocol, and what their answers must have.

Source: Maelstrom's doc/workloads.md. A verb turns an operation into the body of a request, and the body of an answer into the
result of the operation. An answer without what the verb needs does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from harness.console.documents import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.op import Invocation, Value

Body = dict[str, Any]

BEYOND: Final = 10**18  # the offsets of a history are below this

READS: Final = frozenset(
    {"read", "list", "echo", "generate"}
)  # the functions that change nothing, or nothing that is checked


class Unfit(ValueError):  # noqa: N818 - it reads as a sentence
    """An answer does not fit its request; the text is a clause, e.g. `it has no list "messages"`."""


class Other(Unfit):
    """A transaction came back with other micro-operations. Maelstrom takes it; nobody knows then what happened."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A request.

    Attributes:
        type: Its type. That of the answer is the same with `_ok`.
        fields: Returns the other members of the request.
        result: Returns the result of the operation from an answer; raises `Unfit`.
    """

    type: str
    fields: Callable[[Invocation], Body]
    result: Callable[[Invocation, Body], Value]

    def request(self, invocation: Invocation) -> Body:
        """Returns the body of the request."""
        return {"type": self.type, **self.fields(invocation)}

    def check(self, invocation: Invocation, body: Body) -> None:
        """Checks whether an answer fits. An error always does.

        Raises:
            Unfit: It does not.
        """
        kind = body.get("type")
        if kind == "error":
            return
        if kind != f"{self.type}_ok":
            raise Unfit(f"the answer to {self.type} has the type {shown(kind)}, not {self.type}_ok")
        self.result(invocation, body)


def is_code(value: Value) -> TypeGuard[int]:
    """Returns whether a value is the code of an error: an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_integer(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _member(body: Body, name: str) -> Value:
    if name not in body:
        raise Unfit(f'{body["type"]} has no "{name}"')
    return body[name]


def _integer(name: str) -> Callable[[Invocation, Body], Value]:
    def result(_: Invocation, body: Body) -> Value:
        value = _member(body, name)
        if not _is_integer(value):
            raise Unfit(f'"{name}" is not an integer, but {shown(value)}')
        return value

    return result


def _list(name: str) -> Callable[[Invocation, Body], Value]:
    """Returns the reader of a list. Null is the empty one, as in Maelstrom; programs in Go write it."""

    def result(_: Invocation, body: Body) -> Value:
        value = _member(body, name)
        if value is not None and not isinstance(value, list):
            raise Unfit(f'"{name}" is not a list, but {shown(value)}')
        return value or []

    return result


def _any(name: str) -> Callable[[Invocation, Body], Value]:
    return lambda _, body: _member(body, name)


def _same(invocation: Invocation, _: Body) -> Value:
    return invocation.value


def _nothing(_: Invocation) -> Body:
    return {}


def _value(name: str) -> Callable[[Invocation], Body]:
    return lambda invocation: {name: invocation.value}


def _number(key: str | None) -> int:
    """Returns a key as the programs get it: the workloads have the keys `0`, `1`, ..., and these requests have integers."""
    return int(key or 0)


def _key(invocation: Invocation) -> Body:
    return {"key": _number(invocation.key)}


def _key_and_value(invocation: Invocation) -> Body:
    return {**_key(invocation), "value": invocation.value}


def _cas(invocation: Invocation) -> Body:
    expected, new = invocation.value
    return {**_key(invocation), "from": expected, "to": new}


def _poll(invocation: Invocation) -> Body:
    return {"offsets": {str(invocation.key): invocation.value}}


def _entries(invocation: Invocation, body: Body) -> Value:
    """Returns the entries that a poll brought, each with its offset."""
    messages = _member(body, "msgs")
    if not isinstance(messages, dict):
        raise Unfit(f'"msgs" is not an object, but {shown(messages)}')
    entries = messages.get(str(invocation.key))
    entries = [] if entries is None else entries
    if not isinstance(entries, list) or not all(
        isinstance(entry, list) and len(entry) == 2 and _is_integer(entry[0]) for entry in entries
    ):
        raise Unfit(f'"msgs" has no list of [offset, message] for {invocation.key}, but {shown(entries)}')
    return entries


def _commit(invocation: Invocation) -> Body:
    return {"offsets": {str(invocation.key): invocation.value}}


def _list_committed(invocation: Invocation) -> Body:
    return {"keys": [str(invocation.key)]}


def _committed(invocation: Invocation, body: Body) -> Value:
    """Returns the committed offset of the key; None if the answer leaves it out."""
    offsets = _member(body, "offsets")
    if not isinstance(offsets, dict):
        raise Unfit(f'"offsets" is not an object, but {shown(offsets)}')
    offset = offsets.get(str(invocation.key))
    if offset is not None and not (_is_integer(offset) and abs(offset) < BEYOND):
        raise Unfit(f'"offsets" has no offset for {invocation.key}, but {shown(offset)}')
    return offset


def _micro(invocation: Invocation) -> Body:
    return {"txn": invocation.value}


def _is_key(value: Value, key: Value) -> bool:
    """Returns whether a program answered with a key. One that holds its keys as texts answers with the text."""
    return value == str(key) or (_is_integer(value) and value == key)


_WRITES: Final = frozenset({"append", "w"})


def _is_micro(value: Value, write: str | None) -> bool:
    """Returns whether a value has the form of a micro-operation: a read, or a write of the workload, if that is known."""
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[0], str):
        return False
    return value[0] == "r" or (value[0] in _WRITES and write in {None, value[0]})


def _done(invocation: Invocation, body: Body) -> Value:
    """Returns the micro-operations with the results of the reads. All else must be as it was asked."""
    answer, asked = _member(body, "txn"), invocation.value
    answer = [] if answer is None else answer
    write = next((f for f, *_ in asked if f != "r"), None)
    if not isinstance(answer, list) or not all(_is_micro(micro, write) for micro in answer):
        raise Unfit(f'"txn" is not a list of micro-operations, but {shown(answer)}')
    if len(answer) != len(asked):
        raise Other(f'"txn" is not a list of {len(asked)} micro-operations, but {shown(answer)}')
    micros = []
    for number, (micro, (f, key, value)) in enumerate(zip(answer, asked, strict=True), 1):
        if micro[0] != f or not _is_key(micro[1], key):
            raise Other(f"micro-operation {number} was {shown([f, key, value])}, and came back as {shown(micro)}")
        if f != "r" and micro[2] != value:
            raise Other(f"micro-operation {number} writes {shown(value)}, and came back with {shown(micro[2])}")
        micros.append([f, key, micro[2]])
    return micros


_TXN: Final = {"txn": Verb("txn", _micro, _done)}
_COUNTER: Final = {"add": Verb("add", _value("delta"), _same), "read": Verb("read", _nothing, _integer("value"))}

VERBS: Final[Mapping[str, Mapping[str, Verb]]] = MappingProxyType(
    {
        "echo": {"echo": Verb("echo", _value("echo"), _any("echo"))},
        "unique-ids": {"generate": Verb("generate", _nothing, _any("id"))},
        "broadcast": {
            "add": Verb("broadcast", _value("message"), _same),
            "read": Verb("read", _nothing, _list("messages")),
        },
        "g-set": {"add": Verb("add", _value("element"), _same), "read": Verb("read", _nothing, _list("value"))},
        "g-counter": _COUNTER,
        "pn-counter": _COUNTER,
        "lin-kv": {
            "read": Verb("read", _key, _any("value")),
            "write": Verb("write", _key_and_value, _same),
            "cas": Verb("cas", _cas, _same),
        },
        "kafka": {
            "append": Verb(
                "send", lambda invocation: {"key": str(invocation.key), "msg": invocation.value}, _integer("offset")
            ),
            "read": Verb("poll", _poll, _entries),
            "commit": Verb("commit_offsets", _commit, _same),
            "list": Verb("list_committed_offsets", _list_committed, _committed),
        },
        "txn-list-append": _TXN,
        "txn-rw-register": _TXN,
    }
)
