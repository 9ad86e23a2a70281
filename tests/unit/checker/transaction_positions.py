"""Registers with the system's own commit order, decided by definition: as lists.

The order gives all versions of each register. So a register is the list of its versions: a write is an append, and a read of a
version returns all versions up to it. A read of a value that the same transaction wrote before is left out, because a list
would show more than this value. A last transaction reads each list as a whole. Then no execution of a model explains the
answers of the registers with these versions exactly if none explains those of the lists.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness.op import Operation, OpType
from tests.unit.checker.transaction_orders import random_history, transaction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.unit.checker.transaction_orders import Mop

_LAST: Final = 1000


def positioned_history(random: Random, *, most: int) -> list[Operation]:
    """Returns transactions on registers of a store of random strength, with positions that are often those of their order.

    All that may have happened and whose write was read have a position, and some others.
    """
    operations = random_history(random, most=most, lists=False)
    read = {(key, value) for operation in operations for f, key, value in operation.result or () if f == "r"}
    noise = random.choice([0, 2, 6])
    order = sorted(operations, key=lambda operation: operation.invoke_index + random.random() * noise)
    numbers = sorted(random.sample(range(-20, 20), len(order)))
    position = {operation.invoke_index: number for operation, number in zip(order, numbers, strict=True)}
    positioned = []
    for operation in operations:
        is_read = any(f == "w" and (key, value) in read for f, key, value in operation.value)
        has_one = operation.type is OpType.OK or is_read or random.random() < 0.5
        positioned.append(replace(operation, order=position[operation.invoke_index] if has_one else None))
    return positioned


def as_lists(operations: Sequence[Operation]) -> list[Operation]:
    """Returns the transactions on lists, with a last one that reads all of them."""
    read = {(key, value) for operation in operations for f, key, value in operation.result or () if f == "r"}
    versions: dict[Any, list[Any]] = {}
    for operation in sorted(
        (operation for operation in operations if operation.order is not None),
        key=lambda operation: operation.order or 0,
    ):
        for f, key, value in operation.value:
            if f == "w" and (operation.type is not OpType.FAIL or (key, value) in read):
                versions.setdefault(key, []).append(value)

    def mops(some: Sequence[Mop] | None) -> list[Mop] | None:
        own: dict[Any, Any] = {}
        made = []
        for f, key, value in some or ():
            if f == "w":
                own[key] = value
            elif value is not None and own.get(key) == value:
                continue
            made.append(_as_list([f, key, value], versions))
        return None if some is None else made

    lists = [
        replace(operation, value=mops(operation.value), result=mops(operation.result), order=None)
        for operation in operations
    ]
    whole = [["r", key, list(some)] for key, some in sorted(versions.items())]
    return [*lists, transaction(_LAST, OpType.OK, whole, start=_LAST, end=_LAST + 1)]


def _as_list(mop: Mop, versions: dict[Any, list[Any]]) -> Mop:
    f, key, value = mop
    if f == "w":
        return ["append", key, value]
    if value is None:
        return [f, key, None]
    some = versions.get(key, [])
    return [f, key, some[: some.index(value) + 1] if value in some else [value]]
