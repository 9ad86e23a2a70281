"""The checker beside porcupine: the same histories, one after the other in one run.

Both sides get a history that is in memory as each likes it, the time of the check alone is taken, and the best of a few times
counts. Both may stop at the first key that is not linearizable. `whole` is what ours takes from objects in Python to a verdict
for every key. What a side does not finish within the limit counts with the time it took: `>` is a lower bound of the ratio, `<`
an upper one; where neither finished there is none. Both sides must agree.
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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.checker.cases import Case, apply_register, cases, porcupine_lines, simulate, small_domain
from benchmarks.checker.peer import Answer, Porcupine
from benchmarks.checker.registers import unique_writes
from checker._kernel import sort_seconds
from checker.encode import encode
from checker.independent import check_keys
from checker.solving import Limits, solve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker._kernel import Problem
    from harness.op import Operation

T = TypeVar("T")

LIMIT_S = 20.0
REPEATS = 5
SIZES = (1_000, 10_000, 100_000, 1_000_000)
LONGEST = 10_000_000
SHORT_FILE = 100


def main() -> int:
    """Prints the tables; returns 1 if the two sides contradict each other anywhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that porcupine has for each history")
    parser.add_argument("--rows", default="", help="only rows with this in their names")
    options = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory() as directory:
        try:
            peer = Porcupine(Path(directory), limit_s=options.limit, repeats=REPEATS)
        except RuntimeError as error:
            print(f"Porcupine is not measured: {error}.")
            peer = None
        if peer is not None:
            print(f"{'':38}{'ours':>11}{'whole':>11}{'porcupine':>11}{'ratio':>11}  verdict")
            for case in cases(peer.data):
                if options.rows in case.name:
                    _compare(case, peer, table)
            for size in SIZES:
                if options.rows in (name := f"unique values, {size:,} operations"):
                    history = unique_writes(size)
                    outcomes, seconds = _timed([[history.problem()]], peer.limit_s)
                    asked = peer.check("cas-register", [history.porcupine_lines()])
                    table.add(name, outcomes, seconds, None, asked)
            table.summary()
    _longest()
    _start_up()
    return int(table.disagreements > 0)


class Table:
    """The rows so far."""

    def __init__(self) -> None:
        self._ratios: list[float] = []
        self.disagreements = 0

    def add(self, name: str, verdicts: Sequence[str], seconds: float, whole: float | None, asked: Answer) -> None:
        """Prints a row."""
        ratio = asked.seconds / seconds
        ours = "unknown" not in verdicts
        told_ratio = f"{'' if asked.finished else '>'}{'' if ours else '<'}{ratio:,.1f}"
        if ours or asked.finished:
            self._ratios.append(ratio)
        else:
            told_ratio = "-"
        known = [
            (one, other) for one, other in zip(verdicts, asked.verdicts, strict=True) if "unknown" not in {one, other}
        ]
        agree = all(one == other for one, other in known)
        self.disagreements += not agree
        told = " ".join(f"{verdicts.count(v)} {v}" for v in ("valid", "invalid", "unknown") if v in verdicts)
        mark = "" if asked.finished else ">"
        shown = "" if whole is None else _seconds(whole)
        print(
            f"{name:38}{_seconds(seconds):>11}{shown:>11}{mark + _seconds(asked.seconds):>11}{told_ratio:>11}"
            f"  {told}{'' if agree else ' BUT PORCUPINE SAYS ' + ' '.join(sorted(set(asked.verdicts)))}",
            flush=True,
        )

    def summary(self) -> None:
        """Prints what all rows come to."""
        if self._ratios:
            mean = math.exp(sum(map(math.log, self._ratios)) / len(self._ratios))
            print(f"\n{len(self._ratios)} rows: geometric mean {mean:,.0f}, least {min(self._ratios):,.1f}")


def _compare(case: Case, peer: Porcupine, table: Table) -> None:
    encoded = []
    for history in case.histories:
        keys = {op.key for op in history}
        parts = [[op for op in history if op.key == key] for key in keys]
        encoded.append([encode(case.model, part).problem for part in parts])
    verdicts, seconds = _timed(encoded, peer.limit_s)
    whole, _ = _best(lambda: [_verdict(case, history, peer.limit_s) for history in case.histories])
    asked = peer.check(case.porcupine, [porcupine_lines(case.porcupine, history) for history in case.histories])
    table.add(case.name, verdicts, seconds, whole, asked)


def _verdict(case: Case, history: Sequence[Operation], limit_s: float) -> str:
    return str(check_keys(case.model, history, counterexample=False, time_limit=limit_s).valid)


def _timed(histories: Sequence[Sequence[Problem]], limit_s: float) -> tuple[list[str], float]:
    """Decides histories, each given by its keys; returns the verdicts and the seconds of all."""
    limits = Limits(time_limit_s=limit_s)
    verdicts: list[str] = []
    total = 0.0
    for problems in histories:
        seconds, outcomes = _best(partial(solve, problems, limits, fail_fast=True))
        total += seconds
        told = {outcome["verdict"] for outcome in outcomes}
        verdicts.append(next(str(verdict) for verdict in ("invalid", "unknown", "valid") if verdict in told))
    return verdicts, total


def _best(action: Callable[[], list[T]]) -> tuple[float, list[T]]:
    best = math.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - began)
        if best > 1:
            break
    return best, result


def _longest() -> None:
    """Prints time and memory of ten million operations; in a process of its own, as the memory is a high-water mark."""
    source = f"from benchmarks.checker.run import measure; measure({LONGEST})"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", source], cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(done.stdout)
    print(f"\nunique values, {LONGEST:,} operations: {told['verdict']} in {_seconds(told['seconds'])}")
    ratio = told["seconds"] / told["sort"]
    print(f"  sorting as many records of 16 bytes: {_seconds(told['sort'])}, so the check takes {ratio:.2f} times that")
    columns, check = told["columns"] / LONGEST, told["check"] / LONGEST
    print(f"  memory for each operation: {columns:.0f} bytes of columns, {check:.0f} for the check")


def measure(count: int) -> None:
    """Prints what one long history takes, as JSON."""
    problem = unique_writes(count).problem()
    before = _memory("VmRSS", reset=True)
    seconds, outcomes = _best(lambda: solve([problem], Limits(threads=1)))
    after = _memory("VmHWM")
    sort = min(sort_seconds(count) for _ in range(3))
    told = {"verdict": outcomes[0]["verdict"], "seconds": seconds, "sort": sort}
    print(json.dumps({**told, "columns": count * (1 + 4 * 8), "check": after - before}))


def _memory(name: str, *, reset: bool = False) -> int:
    """Returns how many bytes this process has (VmRSS), or had at most (VmHWM) since it was last reset."""
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

        def check() -> list[int]:
            return [subprocess.run([*command, str(path)], stdout=subprocess.DEVNULL, check=True).returncode]

        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        check()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds, _ = _best(check)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"\nlabrys check of a file of {SHORT_FILE} operations, start-up and all: {_seconds(seconds)}", end="")
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
