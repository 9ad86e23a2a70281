"""What clients and nodes said, as tables: the codes of the errors by node, and the last reports of each node.

They are the evidence of a system that does not answer: then neither operations nor lines of logs need to show why.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from harness.console.plain import name, one_line
from harness.op import OpType
from harness.units import NS_PER_S
from results.circumstances.faults import reported
from results.measure.op_outcomes import answered, error_code
from results.page.evidence_tables import MAX_CELL, Table, bounded
from results.words.bounds import MAX_NODES, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Operation
    from results.record.record import RunRecord

MAX_REPORTS: Final = 4  # of a node
NEVER_ENDED: Final = "never ended"  # in place of a code


def said_tables(record: RunRecord, from_ns: int = 0) -> list[Table]:
    """Returns the errors of the clients and the last reports of the nodes, as far as there are any.

    Args:
        record: The record of the run.
        from_ns: The time from which on operations and reports count, on the run's clock.
    """
    since = f" since {at(from_ns)}" if from_ns else ""
    heads = ("function", "code", "number", "at", "first", "last", "the last one")
    reports = [
        (label(node), reported(seen), at(seen.time_ns), at(seen.last_ns))
        for node in record.test.nodes[:MAX_NODES]
        for seen in [seen for seen in record.sightings if seen.node == node and seen.last_ns >= from_ns][-MAX_REPORTS:]
    ]
    return [
        *bounded(f"The errors of the clients{since}", heads, _errors(failed_since(record, from_ns))),
        *bounded(f"The last reports of the nodes{since}", ("node", "it", "from", "to"), reports),
    ]


def failed_since(record: RunRecord, from_ns: int = 0) -> list[Operation]:
    """Returns the operations without an answer from a time on, in the order of their ends: they ended with an error, or never.

    A code that is normal for a working system, such as that of a compare-and-set that did not match, is an answer.
    """
    codes = record.test.codes
    failed = [
        operation
        for operation in record.operations
        if operation.last_ns >= from_ns
        and _code(operation) is not None
        and not answered(operation.type, operation.error, codes)
    ]
    return sorted(failed, key=lambda operation: operation.last_ns)


def _code(operation: Operation) -> str | None:
    """Returns the code of an operation's error; None if it has none."""
    if operation.error is None:
        return NEVER_ENDED if operation.type is OpType.INFO and operation.end_ns is None else None
    return error_code(operation.error)


def _errors(failed: Sequence[Operation]) -> list[tuple[str, ...]]:
    """Returns a row for each function and code, the most frequent first, with the number at each node."""
    codes: dict[tuple[str, str], list[Operation]] = {}
    for operation in failed:
        codes.setdefault((operation.f, _code(operation) or ""), []).append(operation)
    return [
        (
            label(f),
            label(code),
            f"{len(alike):,}",
            _by_node(alike),
            at(alike[0].last_ns),
            at(alike[-1].last_ns),
            name(one_line(alike[-1].error or ""), MAX_CELL),
        )
        for (f, code), alike in sorted(codes.items(), key=lambda entry: -len(entry[1]))
    ]


def _by_node(operations: Sequence[Operation]) -> str:
    """Returns the number at each node, e.g. `n1 3, n2 4`."""
    numbers = Counter(operation.contact.node for operation in operations if operation.contact is not None)
    shown = [f"{label(node)} {number:,}" for node, number in sorted(numbers.items())[:MAX_NODES]]
    return ", ".join(shown)


def at(time_ns: int) -> str:
    """Returns a time of the run in seconds."""
    return f"{time_ns / NS_PER_S:.1f} s"
