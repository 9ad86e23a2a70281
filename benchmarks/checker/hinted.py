"""The rows for histories with the system's order: each with that order and without it, beside porcupine.

Users of other checkers report such histories. One has 3,000 requests, half of them failed without an answer, and is not
decided in minutes (porcupine, issue 20). One is a bank of five accounts with 400 transfers (issue 6). These have the same form
and are drawn from a seed. The objects number their changes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.checker.cases import Case
from benchmarks.checker.subjects import PLACES, BankSubject, MaxRegisterSubject, StoreSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.checker.subjects import Subject
    from harness.op import Operation

# The object, the number of operations, of processes, and of crashed operations.
SETTINGS: Final[Sequence[tuple[str, Callable[[], Subject], tuple[int, int, int]]]] = (
    ("max-register", partial(MaxRegisterSubject, 60), (20_000, 20, 0)),
    ("bank of 5 accounts", BankSubject, (500, 20, 0)),
    ("bank of 5 accounts", BankSubject, (500, 20, 10)),
    ("failing store", StoreSubject, (3_000, 20, 1_500)),
)


def hinted_cases(pattern: str) -> Iterator[Case]:
    """Yields the rows whose names match a pattern: each history first with its order, then without it."""
    for name, make, (count, processes, crashed) in SETTINGS:
        for what in ("valid", "middle"):
            row = f"{name}, {count:,} by {processes}, {crashed:,} crashed, {what}"
            names = [name for name in (f"{row}, order told", f"{row}, no order") if pattern in name]
            if not names:
                continue
            subject = make()
            ordered = subject.history(count=count, processes=processes, crashed=crashed, seed=name, ordered=True)
            if what in PLACES:
                ordered = subject.with_mistake(ordered, PLACES[what])
            for row_name in names:
                yield Case(
                    name=row_name,
                    histories=[ordered if row_name.endswith("told") else without_hints(ordered)],
                    model=subject.model,
                    porcupine=subject.porcupine,
                    valid=what == "valid",
                    whole=True,
                )


def without_hints(operations: Sequence[Operation]) -> list[Operation]:
    """Returns a history without the system's order."""
    return [replace(op, order=None) for op in operations]
