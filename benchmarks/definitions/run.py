"""Verdicts on transactions beside those by definition: random histories, by every order of their few transactions.

`python -m benchmarks definitions --histories 1000000 --first 1000000` needs 45 minutes on a free core. Each history is decided
for some models, `--models`, of all in turn. The seed of a history is its number. A contradiction is printed with it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from checker.formats.columns import OTHER, ColumnOfValues, Columns, of_operations  # noqa: E402 - from the repository
from checker.formats.transactional import happened  # noqa: E402
from checker.transactions.judge import judge  # noqa: E402
from harness.verdict import Verdict  # noqa: E402
from tests.unit.checker.transaction_definitions import weak_history  # noqa: E402
from tests.unit.checker.transaction_orders import doubled, random_history  # noqa: E402
from tests.unit.checker.transaction_positions import positioned_history  # noqa: E402
from tests.unit.checker.transaction_rules import (  # noqa: E402
    BY_ORDERS,
    EXACT,
    LEFT_OUT,
    NO_FALSE_ALARM,
    NOT_WRONG,
    POSITIONED,
    SOURCES,
    WEAK,
    contradicts,
    demanded,
    demanded_of_registers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from checker.judging import Judgement
    from harness.op import Operation
    from tests.unit.checker.transaction_rules import Decide

AT_ONCE = 1000
OUTCOMES = ("legal", "not legal, invalid", "not legal, missed", LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Histories of one kind, and how they are decided.

    Attributes:
        workload: The name of the workload.
        draw: Returns the history of a seed.
        decided: By model: whether an execution explains a history.
        rule: What is demanded of a verdict, given the history, the judgement and the model.
        sources: What the order of versions of registers follows from; none: what each execution of the model has.
    """

    workload: str
    draw: Callable[[Random], list[Operation]]
    decided: dict[str, Decide]
    rule: Callable[[Sequence[Operation], Judgement, str], str]
    sources: Sequence[str] = ()


def _always(demand: str) -> Callable[[Sequence[Operation], Judgement, str], str]:
    return lambda _operations, _found, _model: demand


KINDS = {
    "lists of a strong store, orders": Kind(
        workload="list-append",
        draw=lambda random: random_history(random, most=5, lists=True),
        decided=BY_ORDERS,
        rule=_always(EXACT),
    ),
    "lists with reads of transactions without an answer, orders": Kind(
        workload="list-append",
        draw=lambda random: random_history(random, most=5, lists=True, shows=True),
        decided=BY_ORDERS,
        rule=_always(EXACT),
    ),
    "lists with elements that were appended twice, orders": Kind(
        workload="list-append",
        draw=lambda random: doubled(random, random_history(random, most=5, lists=True)),
        decided=BY_ORDERS,
        rule=_always(NOT_WRONG),
    ),
    "lists of a strong store, weak models": Kind(
        workload="list-append",
        draw=lambda random: random_history(random, most=4, lists=True),
        decided=WEAK,
        rule=demanded,
    ),
    "lists of a weak store, weak models": Kind(
        workload="list-append", draw=lambda random: weak_history(random, most=4), decided=WEAK, rule=demanded
    ),
    "registers, orders": Kind(
        workload="rw-register",
        draw=lambda random: random_history(random, most=5, lists=False),
        decided=BY_ORDERS,
        rule=_always(NO_FALSE_ALARM),
    ),
    "registers with the system's own order, all models": Kind(
        workload="rw-register",
        draw=lambda random: positioned_history(random, most=5),
        decided=POSITIONED,
        rule=demanded_of_registers,
        sources=("transaction-order",),
    ),
}


def main() -> int:
    """Prints how many verdicts agree, by kind of histories; returns the number of contradictions, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000, help="how many histories are drawn")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one")
    parser.add_argument("--models", type=int, default=2, help="for how many models each history is decided")
    given = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    began_s = time.process_time()
    try:
        _compare(range(given.first, given.first + given.histories), given.models, counts)
    except KeyboardInterrupt:
        print("interrupted; these are the histories so far")
    _print(counts, time.process_time() - began_s)
    return min(sum(count for (_, what), count in counts.items() if what.startswith("contradiction")), 100)


def _compare(seeds: range, models: int, counts: Counter[tuple[str, str]]) -> None:
    """Counts how the verdicts on the histories of seeds stand beside those by definition."""
    for at in range(0, len(seeds), AT_ONCE):
        some = seeds[at : at + AT_ONCE]
        for index, (name, kind) in enumerate(KINDS.items()):
            own = [seed for seed in some if seed % len(KINDS) == index]
            histories = [kind.draw(Random(seed)) for seed in own]
            for seed, operations, columns in zip(own, histories, _columns(histories), strict=True):
                counts[name, "histories"] += 1
                for model in _models(kind, seed // len(KINDS), models):
                    what = _compared(kind, operations, columns, model)
                    counts[name, what] += 1
                    if what.startswith("contradiction"):
                        print(f"seed {seed}, {name}, {model}: {what}", flush=True)
        done = at + len(some)
        if done % 50_000 == 0:
            print(f"{done:,} histories", flush=True)


def _models(kind: Kind, number: int, count: int) -> list[str]:
    """Returns some models of a kind; the next history gets the next ones."""
    names = list(kind.decided)
    return [names[(number * count + offset) % len(names)] for offset in range(min(count, len(names)))]


def _compared(kind: Kind, operations: Sequence[Operation], columns: Columns, model: str) -> str:
    """Returns how a verdict stands beside that by definition."""
    sources = kind.sources or (SOURCES[model] if kind.workload == "rw-register" else ())
    judgement = judge(columns, workload=kind.workload, model=model, sources=sources)
    demand = kind.rule(operations, judgement, model)
    if demand == LEFT_OUT:
        return LEFT_OUT
    legal = kind.decided[model](operations)
    if contradicts(judgement, legal=legal, demand=demand):
        return f"contradiction: {judgement.verdict}, {'legal' if legal else 'not legal'}"
    if legal:
        return "legal"
    return "not legal, invalid" if judgement.verdict is Verdict.INVALID else "not legal, missed"


def _columns(histories: Sequence[Sequence[Operation]]) -> Iterator[Columns]:
    """Yields the columns of each history; they are made at once, which is ten times as fast."""
    parts = [happened(list(operations)) for operations in histories]
    whole = of_operations([operation for part in parts for operation in part])
    begin = 0
    for part in parts:
        some = whole.only(np.arange(begin, begin + len(part)))
        begin += len(part)
        used = np.unique(np.concatenate([column.first[column.kind == OTHER] for column in (some.value, some.result)]))
        yield replace(
            some,
            texts=[whole.texts[number] for number in used],
            value=_placed(some.value, used),
            result=_placed(some.result, used),
        )


def _placed(values: ColumnOfValues, used: np.ndarray[tuple[int], np.dtype[np.int64]]) -> ColumnOfValues:
    first = np.where(values.kind == OTHER, np.searchsorted(used, values.first), values.first)
    return replace(values, first=first.astype(np.int64))


def _print(counts: Counter[tuple[str, str]], seconds: float) -> None:
    """Prints a table."""
    print("| histories | number | " + " | ".join(OUTCOMES) + " | contradictions |")
    print("|---|---|" + "---|" * (len(OUTCOMES) + 1))
    for name in KINDS:
        wrong = sum(count for (of, what), count in counts.items() if of == name and what.startswith("contradiction"))
        cells = [counts[name, "histories"], *(counts[name, outcome] for outcome in OUTCOMES), wrong]
        print(f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    print(f"{seconds:.0f} s of CPU time")


if __name__ == "__main__":
    sys.exit(main())
