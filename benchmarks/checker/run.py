"""The checker beside porcupine: the same histories, one after the other in one run.

There are three tables: models that the kernel knows; users' own models, in Python here and in Go there; and histories with the
system's order, each with it and without it. Porcupine does not use an order.

Both sides get a history in memory in their own form. Only the check is timed, and the best of a few times counts. Both may stop
at the first key that is not linearizable. `whole` is Labrys's time from objects in Python to a verdict for every key. In the
third table, `ours` is the same without the encoding. A side that does not finish counts with the time that it took: `>` is a
lower bound of the ratio, `<` an upper one. If neither finished, there is no ratio, and the row is listed below its table. The
two sides must agree with each other and with the verdict by construction.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.checker.cases import Case, apply_register, cases, porcupine_lines, simulate, small_domain
from benchmarks.checker.hinted import hinted_cases
from benchmarks.checker.own_cases import own_cases
from benchmarks.checker.peer import UNKNOWN, Answer, Porcupine
from benchmarks.checker.registers import unique_writes
from checker._kernel import sort_seconds
from checker.decide.deciding import Objects
from checker.decide.decision import decide
from checker.decide.hints import solve_by_hints
from checker.decide.history import OfObjects
from checker.decide.question import Explaining, Question
from checker.search.solving import Limits, solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from checker._kernel import Outcome, Problem
    from harness.op import Operation

A = TypeVar("A")
T = TypeVar("T")

LIMIT_S = 20.0
REPEATS = 5
SIZES = (1_000, 10_000, 100_000, 1_000_000)
LONGEST = 10_000_000
LONGEST_ROW = f"unique values, {LONGEST:,} operations"
SHORT_FILE = 100
KERNEL_MODELS = "models of the kernel"
OWN_MODELS = "models of a user's own"
ORDERS = "orders that the system tells"
TABLES = (KERNEL_MODELS, OWN_MODELS, ORDERS)
START_UP_ROW = f"labrys check of a file of {SHORT_FILE} operations, start-up and all"


def main() -> int:
    """Prints the tables. Returns 1 if any verdict contradicts the other side or the construction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that each side has for a history")
    parser.add_argument("--peer-limit", type=float, default=None, help="another limit for porcupine alone, in seconds")
    parser.add_argument("--rows", default="", metavar="PATTERN", help="only rows and tables with this in their names")
    options = parser.parse_args()
    peer_limit_s = options.limit if options.peer_limit is None else options.peer_limit
    disagreements = 0
    with tempfile.TemporaryDirectory() as directory:
        try:
            peer = Porcupine(Path(directory), limit_s=peer_limit_s, repeats=REPEATS)
        except RuntimeError as error:
            print(f"Porcupine is not measured: {error}.")
        else:
            patterns = {title: "" if options.rows in title else options.rows for title in TABLES}
            tables = {
                KERNEL_MODELS: chain(_rows_of(cases(peer.data)), _unique_values()),
                OWN_MODELS: _rows_of(own_cases(patterns[OWN_MODELS])),
                ORDERS: _rows_of(hinted_cases(patterns[ORDERS])),
            }
            for title, rows in tables.items():
                table = Table(title)
                for row in rows:
                    if patterns[title] in row.name:
                        table.add(row, *_compare(row, peer, options.limit))
                table.summary()
                disagreements += table.disagreements
    if options.rows in LONGEST_ROW:
        _longest()
    if options.rows in START_UP_ROW:
        _start_up()
    return int(disagreements > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decidable:
    """One history in the form of each side.

    Attributes:
        prepare: Returns Labrys's check within a limit, which gives an outcome for each key.
        whole: The check from objects in Python; None if there are none.
        porcupine: Porcupine's model and its parameters.
        lines: The history in porcupine's format.
        valid: The verdict by construction; None if unknown.
        share: Its part of the time limit.
    """

    prepare: Callable[[], Callable[[float], Sequence[Outcome]]]
    whole: Callable[[float], str] | None
    porcupine: tuple[str, str]
    lines: Callable[[], Iterable[str]]
    valid: bool | None
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table.

    Attributes:
        name: The first column.
        histories: The histories.
    """

    name: str
    histories: Sequence[Decidable]


def _rows_of(given: Iterable[Case]) -> Iterator[Row]:
    for name, of_row in groupby(given, key=lambda case: case.name):
        yield Row(name=name, histories=[_decidable(case, history) for case in of_row for history in case.histories])


def _decidable(case: Case, history: Sequence[Operation]) -> Decidable:
    def prepare() -> Callable[[float], Sequence[Outcome]]:
        of_keys = [[op for op in history if op.key == key] for key in {op.key for op in history}]
        coded = [Objects.of(case.model, of_key) for of_key in of_keys]
        if not case.whole:
            return partial(_solved, [key.problem for key in coded])
        return lambda limit_s: [
            outcome for outcome, _ in solve_by_hints(coded, Limits(time_limit_s=limit_s), fail_fast=True)
        ]

    def whole(limit_s: float) -> str:
        question = Question(model=case.model, limits=Limits(time_limit_s=limit_s), explaining=Explaining(most=0))
        return str(decide(OfObjects.of(history), question).valid)

    return Decidable(
        prepare=prepare,
        whole=whole,
        porcupine=(case.porcupine, case.made),
        lines=partial(porcupine_lines, case.model, history),
        valid=case.valid,
        share=case.share,
    )


def _solved(problems: Sequence[Problem], limit_s: float) -> Sequence[Outcome]:
    return solve(problems, Limits(time_limit_s=limit_s), fail_fast=True)


def _unique_values() -> Iterator[Row]:
    for size in SIZES:
        columns = unique_writes(size)
        history = Decidable(
            prepare=lambda columns=columns: partial(_solved, [columns.problem()]),  # type: ignore[misc]  # bound here
            whole=None,
            porcupine=("cas-register", ""),
            lines=columns.porcupine_lines,
            valid=True,
            share=1.0,
        )
        yield Row(name=f"unique values, {size:,} operations", histories=[history])


class Table:
    """The rows so far."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._ratios: list[float] = []
        self._undecided: list[str] = []
        self.disagreements = 0

    def add(self, row: Row, ours: Sequence[Ours], asked: Sequence[Answer]) -> None:
        """Adds and prints a row."""
        if not self._ratios and not self._undecided:
            print(f"\n{self._title:58}{'steps':>15}{'ours':>9}{'whole':>9}{'porcupine':>11}{'ratio':>10}  verdict")
        finished = all(answer.verdict != UNKNOWN for answer in asked)
        decided = all(one.verdict != UNKNOWN for one in ours)
        seconds, theirs = sum(one.seconds for one in ours), sum(answer.seconds for answer in asked)
        ratio = f"{'' if finished else '>'}{'' if decided else '<'}{theirs / seconds:,.1f}"
        if decided or finished:
            self._ratios.append(theirs / seconds)
        else:
            ratio = "-"
        neither = sum({one.verdict, answer.verdict} == {UNKNOWN} for one, answer in zip(ours, asked, strict=True))
        if neither:
            self._undecided.append(row.name if len(ours) == 1 else f"{row.name}: {neither} of {len(ours)}")
        wrong = _contradictions(row, ours, asked)
        self.disagreements += len(wrong)
        whole = [one.whole for one in ours if one.whole is not None]
        results = Counter(one.verdict for one in ours)
        print(
            f"{row.name:58}{sum(one.steps for one in ours):>15,}{_seconds(seconds):>9}"
            f"{_seconds(sum(whole)) if len(whole) == len(ours) else '':>9}"
            f"{('' if finished else '>') + _seconds(theirs):>11}{ratio:>10}"
            f"  {' '.join(f'{results[verdict]} {verdict}' for verdict in sorted(results))}{''.join(wrong[:3])}",
            flush=True,
        )

    def summary(self) -> None:
        """Prints the summary of all rows."""
        if self._ratios:
            mean = math.exp(sum(map(math.log, self._ratios)) / len(self._ratios))
            print(f"\n{len(self._ratios)} rows: geometric mean {mean:,.1f}, least {min(self._ratios):,.2f}")
        if self._undecided:
            print(f"\nNeither side decides within the limit ({len(self._undecided)} rows):")
            print("\n".join(f"  {name}" for name in self._undecided))


def _contradictions(row: Row, ours: Sequence[Ours], asked: Sequence[Answer]) -> list[str]:
    """Returns the contradictions in the verdicts of a row."""
    contradictions = []
    for history, one, answer in zip(row.histories, ours, asked, strict=True):
        known = {} if history.valid is None else {"the history is": "valid" if history.valid else "invalid"}
        results = {**known, "ours says": one.verdict, "porcupine says": answer.verdict}
        if len(set(results.values()) - {UNKNOWN}) > 1:
            contradictions.append(f" BUT {', '.join(f'{who} {verdict}' for who, verdict in results.items())}")
    return contradictions


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Labrys's result for a history.

    Attributes:
        verdict: The verdict.
        seconds: The time of the check alone.
        whole: The time from objects in Python; None if it was not measured.
        steps: The steps of the search.
    """

    verdict: str
    seconds: float
    whole: float | None
    steps: int


def _compare(row: Row, peer: Porcupine, limit_s: float) -> tuple[list[Ours], list[Answer]]:
    ours, asked = [], []
    for history in row.histories:
        ours.append(_measure_ours(history, limit_s * history.share))
        asked.append(peer.check(*history.porcupine, history.lines(), peer.limit_s * history.share))
    return ours, asked


def _measure_ours(history: Decidable, limit_s: float) -> Ours:
    seconds, outcomes = _best(lambda decide: decide(limit_s), history.prepare)
    results = {outcome.verdict for outcome in outcomes}
    verdict = next(str(candidate) for candidate in ("invalid", "unknown", "valid") if candidate in results)
    whole = None
    if history.whole is not None and verdict != UNKNOWN:
        whole, _ = _best(history.whole, lambda: limit_s)
    return Ours(verdict=verdict, seconds=seconds, whole=whole, steps=sum(outcome.steps for outcome in outcomes))


def _best(action: Callable[[A], T], prepare: Callable[[], A]) -> tuple[float, T]:
    """Returns the shortest time of an action, and its result. Each run gets a new argument without cached answers."""
    best = math.inf
    for _ in range(REPEATS):
        prepared = prepare()
        began = time.perf_counter()
        result = action(prepared)
        best = min(best, time.perf_counter() - began)
        if best > 1:
            break
    return best, result


def _longest() -> None:
    """Prints time and memory of ten million operations, in a separate process because the memory is a high-water mark."""
    source = f"from benchmarks.checker.run import measure; measure({LONGEST})"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", source], cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    results = json.loads(done.stdout)
    print(f"\n{LONGEST_ROW}: {results['verdict']} in {_seconds(results['seconds'])}")
    ratio = results["seconds"] / results["sort"]
    print(
        f"  sorting as many records of 16 bytes: {_seconds(results['sort'])}, so the check takes {ratio:.2f} times that"
    )
    columns, check = results["columns"] / LONGEST, results["check"] / LONGEST
    print(f"  memory for each operation: {columns:.0f} bytes of columns, {check:.0f} for the check")


def measure(count: int) -> None:
    """Prints the measurements of one long history as JSON."""
    problem = unique_writes(count).problem()
    before = _memory("VmRSS", reset=True)
    seconds, outcomes = _best(lambda given: solve([given], Limits(threads=1)), lambda: problem)
    after = _memory("VmHWM")
    sort = min(sort_seconds(count) for _ in range(3))
    results = {"verdict": outcomes[0].verdict, "seconds": seconds, "sort": sort}
    print(json.dumps({**results, "columns": count * (1 + 4 * 8), "check": after - before}))


def _memory(name: str, *, reset: bool = False) -> int:
    """Returns this process's resident bytes (VmRSS), or the maximum (VmHWM) since its last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def _start_up() -> None:
    """Prints the wall time of the command on a short file."""
    history = simulate(small_domain(5), apply_register, count=SHORT_FILE, processes=5, seed="short")
    events = sorted(
        event
        for op in history
        for event in (
            (op.invoke_index, op.process, "invoke", op.f, op.value),
            (op.complete_index, op.process, str(op.type), op.f, op.value if op.result is None else op.result),
        )
    )
    command = [str(Path(sys.executable).parent / "labrys"), "check", "--model", "cas-register"]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "short.edn"
        path.write_text(
            "".join(f"{{:process {p}, :type :{t}, :f :{f}, :value {_edn(v)}}}\n" for _, p, t, f, v in events)
        )

        def check(_: None) -> list[int]:
            return [subprocess.run([*command, str(path)], stdout=subprocess.DEVNULL, check=True).returncode]

        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        check(None)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds, _ = _best(check, lambda: None)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"\n{START_UP_ROW}: {_seconds(seconds)}", end="")
    print(f" ({_seconds(processor)} of processor time)")


def _edn(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{value[0]} {value[1]}]"
    return "nil" if value is None else str(value)


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"


if __name__ == "__main__":
    sys.exit(main())
