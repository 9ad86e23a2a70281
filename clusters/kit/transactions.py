"""Transactions of several keys on systems that hold values: which keys to read, and what to write then.

A transaction is a list of micro-operations `[function, key, value]`, as the workloads `list-append` and `rw-register` make
them. A client reads all keys of a transaction at once, computes the results and the new values here, and writes them if
the system's own transaction allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value

TRANSACTION: Final = "txn"
LIST_APPEND: Final = "list-append"
RW_REGISTER: Final = "rw-register"
READ: Final = "r"
APPEND: Final = "append"
WRITE: Final = "w"
MAX_SHOWN: Final = 100

Mops = list[list["Value"]]


def keys_of(mops: Mops) -> list[str]:
    """Returns the distinct keys of a transaction, in the order of their first use."""
    return list(dict.fromkeys(str(key) for _, key, _ in mops))


def only_reads(mops: Mops) -> bool:
    """Returns whether a transaction has no effect."""
    return all(function == READ for function, _, _ in mops)


def applied(mops: Mops, state: Mapping[str, Value]) -> tuple[Mops, dict[str, Value]]:
    """Returns the answer of a transaction, and what it writes.

    Args:
        mops: Its micro-operations.
        state: The value of each of its keys; None for a key that does not exist.

    Returns:
        The micro-operations with the results of the reads, and by key the last value that the transaction writes.

    Raises:
        NoAnswer: A key to which the transaction appends holds no list, so no client of this test wrote it.
    """
    now, written, answer = dict(state), {}, []
    for function, key, value in mops:
        if function == READ:
            answer.append([function, key, now[key]])
            continue
        if function == APPEND:
            before = now[key] if now[key] is not None else []
            if not isinstance(before, list):
                raise NoAnswer(f"expected a list at key {key}, found {str(before)[:MAX_SHOWN]}")
            now[key] = written[key] = [*before, value]
        else:
            now[key] = written[key] = value
        answer.append([function, key, value])
    return answer, written
