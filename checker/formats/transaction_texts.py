"""Reads the two text forms of reads and writes that other checkers of transactions have.

The form of PolySI, Plume, AWDIT and IsoVista has one micro-operation on each line, `r(key,value,session,transaction)` or
`w(...)`. There, 0 is the initial value, and the transaction -1 is a write that was rolled back. A first transaction may write
0 to keys: these writes are the initial state. Source: the histories that PolySI and IsoVista publish.

The form of AWDIT's own tests has `r key value` or `w key value` on each line, a line of `-` between transactions, and a line of
`=` between sessions. There, 0 is a value as any other one. Source: AWDIT's manual and its tests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from checker.formats.errors import BadHistory, shown
from checker.formats.missing import COMPLETION, FUNCTION, INDEX, INVOKE, KEY, PROCESS, TIME, TYPE, VALUE, May
from checker.formats.transactional import TRANSACTION, requested
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.formats.source import Source
    from harness.op import Value

RW_REGISTER: Final = "rw-register"
# A line is a part of a transaction that happened. Its members are positions, so none can be missing.
MAY_LACK: Final[Mapping[str, May]] = {
    **dict.fromkeys((TYPE, FUNCTION, INDEX, TIME, INVOKE), May.ALWAYS),
    **dict.fromkeys((PROCESS, VALUE, COMPLETION), May.NO),
    KEY: May.ALWAYS,
}
TEXT_START: Final = re.compile(rb"\s*[rw](?:\(\s*-?\d|[ \t]+\d+[ \t]+\d+[ \t]*(?:\r?\n|\Z))")
_APART_START: Final = re.compile(rb"\s*[rw][ \t]")
_LINE: Final = re.compile(
    rb"\s*([rw])\(\s*(-?\d{1,20})\s*,\s*(-?\d{1,20})\s*,\s*(\d{1,18})\s*,\s*(-?\d{1,20})\s*\)\s*\Z"
)
_APART_LINE: Final = re.compile(rb"\s*(?:([rw])[ \t]+(\d{1,20})[ \t]+(\d{1,20})|(=+)|(-+))\s*\Z")
_LINE_BYTES: Final = 200
_ROLLED_BACK: Final = -1


INITIAL: Final = "initial"  # the convention of the form with numbers: its initial value
_OF_NUMBERED: Final = "0"


def read_text(source: Source, transactions: str) -> tuple[list[Operation], list[str], Mapping[str, str]]:
    """Reads a text form.

    Returns:
        The transactions, in the order of their first lines, whose sessions are processes; warnings as sentences; and the
        conventions of the form.

    Raises:
        BadHistory: A line has another form, or the workload is not `rw-register`.
    """
    if transactions != RW_REGISTER:
        raise BadHistory(
            source.name, 1, f"expected lists, found reads and writes of single values; check it with {RW_REGISTER}"
        )
    if _APART_START.match(source.head):
        return *_apart(source), {}
    return *_numbered(source), {INITIAL: _OF_NUMBERED}


def _numbered(source: Source) -> tuple[list[Operation], list[str]]:
    """Reads the form in which each line has its session and its transaction."""
    transactions: dict[tuple[int, int, int], list[list[Value]]] = {}
    initial: set[int] = set()  # the keys to which the first transaction wrote 0
    first: tuple[int, int, int] | None = None
    while line := source.readline_bytes(_LINE_BYTES):
        match = _LINE.match(line)
        if match is None:
            if not line.strip():
                continue
            raise _no_line(source, line, "r(key,value,session,transaction) or w(...)")
        key, value, session, number = map(int, match.groups()[1:])
        is_read = match[1] == b"r"
        transaction_key = session, number, source.line if number == _ROLLED_BACK else 0
        first = first or transaction_key
        mops = transactions.setdefault(transaction_key, [])
        if value or is_read:
            mops.append([match[1].decode(), key, value or None])
        elif transaction_key == first and number != _ROLLED_BACK and all(mop[1] != key for mop in mops):
            initial.add(key)
        else:
            raise BadHistory(
                source.name,
                source.line,
                "expected a write of a value other than 0, the initial one, which only the first transaction may write, "
                "before all else that it does with the key",
            )
    warnings = []
    if initial:
        warnings.append(
            f"the first transaction writes 0, the initial value, to {len(initial)} keys; these writes count as the initial "
            "state, and not as its own"
        )
    operations = [
        _operation(index, session, mops, failed=number == _ROLLED_BACK)
        for index, ((session, number, _), mops) in enumerate(transactions.items())
        if mops
    ]
    return operations, warnings


def _apart(source: Source) -> tuple[list[Operation], list[str]]:
    """Reads the form with lines between transactions and sessions."""
    transactions: list[tuple[int, list[list[Value]]]] = [(0, [])]
    while line := source.readline_bytes(_LINE_BYTES):
        match = _APART_LINE.match(line)
        if match is None:
            if not line.strip():
                continue
            raise _no_line(source, line, "r key value, w key value, a line of - or a line of =")
        function, key, value, between_sessions, _ = match.groups()
        if function is not None:
            transactions[-1][1].append([function.decode(), int(key), int(value)])
        else:
            transactions.append((transactions[-1][0] + (between_sessions is not None), []))
    return [
        _operation(index, session, mops, failed=False)
        for index, (session, mops) in enumerate(transaction for transaction in transactions if transaction[1])
    ], []


def _no_line(source: Source, line: bytes, expected: str) -> BadHistory:
    text = shown(line.decode(errors="backslashreplace").rstrip())
    return BadHistory(source.name, source.line, f"expected {expected}, found {text}")


def _operation(index: int, session: int, mops: list[list[Value]], *, failed: bool) -> Operation:
    return Operation(
        process=session,
        f=TRANSACTION,
        value=requested(mops),
        result=None if failed else mops,
        type=OpType.FAIL if failed else OpType.OK,
        start_ns=0,
        end_ns=0,
        invoke_index=index,
        complete_index=index,
    )
