"""The rows for users' own models: valid histories, and the same with one mistake at the start, middle or end."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from benchmarks.checker.cases import Case
from benchmarks.checker.subjects import (
    PLACES,
    AutomatonSubject,
    CasListSubject,
    CommitSubject,
    LeaseSubject,
    MaxRegisterSubject,
    StackSubject,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.checker.subjects import Subject

AUTOMATA: Final = 20
# The object, the number of operations, of processes, and of crashed operations.
SETTINGS: Final[Sequence[tuple[str, Callable[[], Subject], Sequence[tuple[int, int, int]]]]] = (
    ("max-register", partial(MaxRegisterSubject, 60), [(1_000, 50, 20), (100_000, 20, 0)]),
    ("max-register, rising", partial(MaxRegisterSubject, None), [(1_000, 10, 5), (100_000, 5, 0)]),
    ("bounded stack", StackSubject, [(1_000, 10, 5), (10_000, 5, 0)]),
    ("lease lock", LeaseSubject, [(1_000, 20, 10), (100_000, 5, 0)]),
    ("two-phase commit", CommitSubject, [(1_000, 10, 5), (10_000, 20, 20)]),
    ("cas list", CasListSubject, [(1_000, 10, 5), (10_000, 10, 0)]),
)
OF_AUTOMATA: Final = ((1_000, 5, 0), (1_000, 20, 5), (10_000, 5, 2))


def own_cases(pattern: str) -> Iterator[Case]:
    """Yields the rows whose names match a pattern. The row of 20 automata has a case for each."""
    rows = [
        _row("max-register", [("issue", partial(MaxRegisterSubject, 60))], (20_000, 20, 0), pattern, places=("middle",))
    ]
    for name, make, settings in SETTINGS:
        rows += [_row(name, [(name, make)], setting, pattern) for setting in settings]
    automata = [(f"automaton {i}", partial(AutomatonSubject, f"automaton {i}")) for i in range(AUTOMATA)]
    rows += [_row(f"{AUTOMATA} automata", automata, setting, pattern, share=0.1) for setting in OF_AUTOMATA]
    return chain.from_iterable(rows)


def _row(
    name: str,
    subjects: Sequence[tuple[str, Callable[[], Subject]]],
    setting: tuple[int, int, int],
    pattern: str,
    *,
    places: Sequence[str] = tuple(PLACES),
    share: float = 1.0,
) -> Iterator[Case]:
    count, processes, crashed = setting
    for what in ("valid", *places):
        row = f"{name}, {count:,} by {processes}, {crashed} crashed, {what}"
        if pattern not in row:
            continue
        for seed, make in subjects:
            subject = make()
            history = subject.history(count=count, processes=processes, crashed=crashed, seed=f"{seed} {setting}")
            yield Case(
                name=row,
                histories=[history if what == "valid" else subject.with_mistake(history, PLACES[what])],
                model=subject.model,
                porcupine=subject.porcupine,
                made=subject.made,
                valid=what == "valid",
                share=share,
            )
