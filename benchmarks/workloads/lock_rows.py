"""Rows of the lock workload: repeatedly an acquire with a token, two refused acquires, and a release."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.workloads.rows import Row, columns, values
from checker.formats.columns import FAIL, INTEGER, NOTHING, OK
from workloads.lock import LockOptions, LockWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns

HOLDERS = 64


def history(count: int, *, twice: bool = False) -> Columns:
    """Returns a lock with `count` operations.

    Args:
        count: The number of operations.
        twice: Whether one acquire succeeds that should be refused.
    """
    turns = count // 4
    number = np.arange(4 * turns)
    position = number % 4
    holder = np.random.default_rng(1).integers(0, HOLDERS, turns)
    kind = np.where((position == 1) | (position == 2), FAIL, OK).astype(np.int8)
    if twice:
        kind[turns // 2 * 4 + 1] = OK
    rows = columns(
        ["acquire", "release"],
        function=np.where(position == 3, 1, 0),
        kind=kind,
        start=2 * number,
        end=2 * number + 1,
        value=values(np.full(len(number), NOTHING, np.int8), np.zeros_like(number)),
        result=values(np.where(position == 0, INTEGER, NOTHING).astype(np.int8), np.where(position == 0, number, 0)),
    )
    # The refused processes are not the holders of the lock.
    refused = HOLDERS * np.where((position == 1) | (position == 2), position, 0)
    return replace(rows, process=holder[number // 4] + refused)


ROWS = (
    Row(name="lock, valid", judge=LockWorkload(), make=history),
    Row(name="lock, with leases", judge=LockWorkload(LockOptions(lease_s=1.0)), make=history),
    Row(
        name="lock, two holders",
        judge=LockWorkload(),
        make=partial(history, twice=True),
        kinds=frozenset({"two-holders"}),
    ),
)
