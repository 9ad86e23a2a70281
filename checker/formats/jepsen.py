"""Writes history.edn: the history as Jepsen writes it, so that knossos, elle-cli and jepsen.history can read it.

These tools have the following requirements:

- Each line is one map with the keys index, time, type, process, f, value, and then extras.
- Values are only nil, booleans, numbers, strings, keywords, vectors and maps, because knossos has no reader for tags.
- A completion that failed or is unknown has the value of its invoke, or knossos refuses the history.
- The process of a fault is `:nemesis`.

An operation on a key has the value `[key value]`, as Jepsen's independent generators write it. The first event of such a file
has the conventions of the history, with `:keyed true` (`checker.formats.conventions`). `write_key_histories` writes a file for
each key without that, and without the nemesis, for knossos' command line.
"""

from __future__ import annotations

import os
import re
from itertools import chain
from typing import TYPE_CHECKING, TextIO

from checker.edn.values import Keyword
from checker.edn.writer import dumps, keywordized
from checker.formats.conventions import OWN, spelled
from harness.errors import InfrastructureError
from harness.op import NEMESIS, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from harness.op import Op, Process, Value

TRANSACTION = "txn"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_CHARACTERS = 40


def write_history(path: Path, ops: Iterable[Op], *, conventions: Mapping[str, str] = OWN) -> int:
    """Writes a whole history with its faults; replaces an existing file.

    Args:
        path: The file.
        ops: The events, in their order; read one at a time.
        conventions: The conventions of the history, for its first event.

    Returns:
        The number of written events.

    Raises:
        InputError: EDN cannot represent a value; no file is left.
        InfrastructureError: The file cannot be written; no file is left.
    """
    return _replacing(path, lambda file: _write(file, ops, conventions))


def write_key_histories(directory: Path, ops: Iterable[Op]) -> Mapping[str | None, Path]:
    """Writes one history for each key, only of clients' events, with their indexes in the whole history.

    Args:
        directory: The folder; it is made if it is missing.
        ops: The events of the whole history.

    Returns:
        The file of each key, in the order of their first events; the key of events without one is None.

    Raises:
        InputError: EDN cannot represent a value.
        InfrastructureError: A file cannot be written.
    """
    by_key: dict[str | None, list[Op]] = {}
    for op in ops:
        if op.process != NEMESIS:
            by_key.setdefault(op.key, []).append(op)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"{directory}: cannot be made: {error.strerror}") from error
    files: dict[str | None, Path] = {}
    for number, (key, own) in enumerate(by_key.items()):
        slug = "" if key is None else "-" + _UNSAFE.sub("_", key)[:_SLUG_CHARACTERS]
        files[key] = directory / f"{number:04d}{slug}.edn"
        _replacing(files[key], _writer_of(own))
    return files


def _writer_of(ops: list[Op]) -> Callable[[TextIO], int]:
    return lambda file: _write(file, (op._replace(key=None) for op in ops), OWN)


def _replacing(path: Path, write: Callable[[TextIO], int]) -> int:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            count = write(file)
        partial.replace(path)
    except OSError as error:
        raise InfrastructureError(f"{path}: the history cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write(file: TextIO, ops: Iterable[Op], conventions: Mapping[str, str]) -> int:
    invoked: dict[Process, Value] = {}
    names: dict[str, str] = {}
    count = 0
    rest = iter(ops)
    first = list(_until_client(rest))
    declared = ", " + spelled(conventions, keyed=bool(first) and first[-1].key is not None)
    for op in chain(first, rest):
        value = op.value
        if op.process != NEMESIS:
            if op.type is OpType.INVOKE:
                invoked[op.process] = value
            else:
                argument = invoked.pop(op.process, value)
                value = value if op.type is OpType.OK else argument
        file.write(_line(op, value, names, declared if not count else ""))
        count += 1
    return count


def _until_client(ops: Iterator[Op]) -> Iterator[Op]:
    """Yields events up to the first one of a client, which determines whether the history is keyed."""
    for op in ops:
        yield op
        if op.process != NEMESIS:
            return


def _line(op: Op, value: Value, names: dict[str, str], more: str) -> str:
    text = _value(op.f, value)
    if op.key is not None:
        text = f"[{dumps(op.key)} {text}]"
    process = op.process if type(op.process) is int else _name(str(op.process), names)
    line = (
        f"{{:index {op.index}, :time {op.time_ns}, :type :{op.type}, :process {process}, "
        f":f {_name(op.f, names)}, :value {text}"
    )
    if op.node is not None:
        line += f", :node {dumps(op.node)}"
    if op.error is not None:
        line += f", :error {dumps(op.error)}"
    if op.scheduled_ns is not None:
        line += f", :scheduled {op.scheduled_ns}"
    if op.phase is not None:
        line += f", :phase {_name(op.phase, names)}"
    if op.via is not None:
        line += f", :via {dumps(op.via)}"
    if op.order is not None:
        line += f", :order {op.order}"
    return f"{line}{more}}}\n"


def _value(f: str, value: Value) -> str:
    if value is None:
        return "nil"
    if type(value) is int:
        return dumps(value)
    return dumps(micro_operations(value) if f == TRANSACTION else keywordized(value))


def micro_operations(value: Value) -> Value:
    """Returns a transaction with its functions as keywords: `[["r", "x", null]]` as `[[:r "x" nil]]`."""
    if not isinstance(value, list):
        return keywordized(value)
    return [
        [_keyword(part[0]), *map(keywordized, part[1:])] if isinstance(part, list) and part else keywordized(part)
        for part in value
    ]


def _name(name: str, names: dict[str, str]) -> str:
    known = names.get(name)
    if known is None:
        known = names[name] = dumps(_keyword(name))
    return known


def _keyword(name: Value) -> Value:
    try:
        return Keyword(name) if isinstance(name, str) else name
    except ValueError:
        return name
