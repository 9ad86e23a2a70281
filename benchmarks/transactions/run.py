"""Compares `labrys check` of transactions with the crate adya: whole commands, start-up and reading included.

Both commands get the same file of JSON Lines, which a simulated store answered, so the verdict of each history is known.
Another verdict is an error of the benchmark, and makes it end with 1.

`cargo install` builds adya 0.1.0 from crates.io. Without cargo, only Labrys is measured. Each command has a limit of time.
adya gets no history above a size, because its memory would exceed that of most machines.

The row of 10,000,000 transactions needs 8 GB on the disk for its file; `--most 10000000` asks for it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from benchmarks.transactions.registers import Store, skewed, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ADYA: Final = "0.1.0"
PROCESSES: Final = 10
KEYS: Final = 10
WRITES_PER_KEY: Final = 256  # as Jepsen's generator
MAX_LENGTH: Final = 4
LIMIT_S: Final = 600.0
REPEATS: Final = 3
SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
MOST: Final = 1_000_000
MOST_OF_ADYA: Final = 1_000_000  # it needs 10 GB for these
SNAPSHOTS: Final = 100_000
REGISTERS: Final = 20_000
UNORDERED: Final = 100_000
COMPONENT: Final = 20_000
MEBI: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of a command, the fastest of several.

    Attributes:
        verdict: `valid`, `invalid` or `unknown`; `stopped` at the limit.
        wall_s: Seconds by the clock.
        cpu_s: Seconds of processors.
        bytes: The largest resident memory.
        judged_s: Seconds without the start of the command and the reading of the file, if the command tells.
    """

    verdict: str
    wall_s: float
    cpu_s: float
    bytes: int
    judged_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A history, and how both sides are asked about it.

    Attributes:
        name: The first column.
        path: The file.
        workload: `list-append` or `rw-register`.
        options: The options that both have: `linearizable-keys`, or none.
        verdict: The verdict by construction.
        model: The consistency model.
        is_for_both: Whether adya is asked too.
    """

    name: str
    path: Path
    workload: str
    options: Sequence[str] = ()
    verdict: str = "valid"
    model: str = "strict-serializable"
    is_for_both: bool = True


@dataclass(slots=True)
class _Plans:
    """Draws transactions: one to four micro-operations, half of them reads, with few keys that are used often.

    Attributes:
        random: Draws everything.
        lists: Whether they append, and do not write registers.
    """

    random: Random
    lists: bool
    _writes: dict[int, int] = field(default_factory=dict)
    _active: list[int] = field(default_factory=lambda: list(range(KEYS)))
    _fresh: int = KEYS

    def draw(self) -> list[list[Any]]:
        """Returns the request of a transaction."""
        mops: list[list[Any]] = []
        for _ in range(1 + self.random.randrange(MAX_LENGTH)):
            index = min(KEYS - 1, int(-math.log2(1 - self.random.random() * (1 - 2.0**-KEYS))))
            key = self._active[index]
            if self.random.random() < 0.5:
                mops.append(["r", key, None])
                continue
            self._writes[key] = self._writes.get(key, 0) + 1
            mops.append(["append" if self.lists else "w", key, self._writes[key]])
            if self._writes[key] >= WRITES_PER_KEY:
                self._active[index], self._fresh = self._fresh, self._fresh + 1
        return mops


def main() -> int:
    """Prints the table. Returns 1 if a verdict is not the one by construction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that a command has")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="how often each command runs; the fastest counts")
    parser.add_argument("--most", type=int, default=MOST, help="the largest number of transactions")
    parser.add_argument("--rows", default="", metavar="PATTERN", help="only rows with this in their names")
    parser.add_argument("--adya", default=None, metavar="PROGRAM", help="adya itself, if it was built before")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        adya = options.adya or built_adya(folder)
        print(
            "| history | Labrys: seconds, of CPU, MiB | to judge | adya: seconds, of CPU, MiB | seconds | MiB |\n"
            "|---|---|---|---|---|---|"
        )
        for row in _rows(folder, options.most, options.rows):
            ours = _measured(_labrys(row), options.limit, options.repeats)
            program = adya if row.is_for_both else None
            theirs = _measured(_of_adya(program, row), options.limit, options.repeats) if program else None
            wrong += ours.verdict != row.verdict
            print(_line(row, ours, theirs), flush=True)
            row.path.unlink()
    return int(wrong > 0)


def _rows(folder: Path, most: int, pattern: str) -> Iterator[Row]:
    """Yields the rows; the file of each is made when it is asked for."""
    for size in (size for size in SIZES if size <= most):
        name = f"{size:,} transactions of list-append"
        if pattern in name:
            path = _written(folder, size, lists=True)
            yield Row(name=name, path=path, workload="list-append", is_for_both=size <= MOST_OF_ADYA)
    name = f"{SNAPSHOTS:,} transactions under snapshot isolation"
    if pattern in name:
        path = _on_snapshots(folder, SNAPSHOTS)
        yield Row(name=name, path=path, workload="list-append", model="snapshot-isolation")
    name = f"{REGISTERS:,} transactions of rw-register, linearizable keys"
    if pattern in name:
        path = _written(folder, REGISTERS, lists=False)
        yield Row(name=name, path=path, workload="rw-register", options=["linearizable-keys"])
    yield from _unordered(folder, pattern)
    name = f"one component of {COMPONENT:,} transactions"
    if pattern in name:
        yield Row(name=name, path=_ring(folder, COMPONENT), workload="list-append", verdict="invalid")


def _unordered(folder: Path, pattern: str) -> Iterator[Row]:
    """Yields the rows of registers without an order of their versions; adya does not search one."""
    for what, model, verdict, keeps in (
        ("", "serializable", "valid", WRITES_PER_KEY),
        ("", "strict-serializable", "valid", WRITES_PER_KEY),
        ("", "snapshot-isolation", "valid", WRITES_PER_KEY),
        (", with write skews", "snapshot-isolation", "valid", WRITES_PER_KEY),
        (" on 20 keys", "serializable", "valid", 0),
        (", one write skew", "serializable", "unknown", WRITES_PER_KEY),
    ):
        name = f"{UNORDERED:,} transactions of rw-register{what}, {model}"
        if pattern in name:
            store = Store(random=Random(1), keys=20, writes_per_key=keeps, on_snapshots="skews" in what)
            lines = store.events(UNORDERED)
            path = written(folder / "history.jsonl", lines if verdict == "valid" else skewed(lines, UNORDERED))
            yield Row(name=name, path=path, workload="rw-register", verdict=verdict, model=model, is_for_both=False)


def _written(folder: Path, count: int, *, lists: bool) -> Path:
    """Writes a strict serializable history of concurrent transactions; each takes effect at once, while it is open."""
    random, path = Random(count), folder / "history.jsonl"
    plans = _Plans(random, lists)
    state: dict[int, Any] = {}
    open_: dict[int, list[list[Any]]] = {}
    begun = at_ns = 0
    with path.open("w", encoding="utf-8") as file:
        while begun < count or open_:
            process = random.randrange(PROCESSES)
            at_ns += 1000
            if process in open_:
                answer = _apply(open_.pop(process), state, lists=lists)
                file.write(_event("ok", process, answer, at_ns))
            elif begun < count:
                begun += 1
                open_[process] = plans.draw()
                file.write(_event("invoke", process, open_[process], at_ns))
    return path


def _on_snapshots(folder: Path, count: int) -> Path:
    """Writes a history of snapshot isolation that is not serializable.

    A transaction reads what was committed when it began. It fails if another one has committed an append to one of its keys
    since. In the end, each key is read once.
    """
    random, path = Random(count), folder / "history.jsonl"
    plans = _Plans(random, lists=True)
    values: dict[int, list[int]] = {}
    commits: dict[int, list[int]] = {}  # by key: when each element was committed
    open_: dict[int, tuple[int, list[list[Any]]]] = {}
    begun = at_ns = 0
    with path.open("w", encoding="utf-8") as file:
        while begun < count or open_:
            process = random.randrange(PROCESSES)
            at_ns += 1000
            if process not in open_:
                if begun < count:
                    begun += 1
                    open_[process] = (at_ns, plans.draw())
                    file.write(_event("invoke", process, open_[process][1], at_ns))
                continue
            since_ns, mops = open_.pop(process)
            seen = {key: values.get(key, [])[: bisect_right(commits.get(key, []), since_ns)] for _, key, _ in mops}
            if any(f == "append" and len(seen[key]) < len(values.get(key, [])) for f, key, _ in mops):
                file.write(_event("fail", process, mops, at_ns))
                continue
            file.write(_event("ok", process, _apply(mops, seen, lists=True), at_ns))
            for f, key, value in mops:
                if f == "append":
                    values.setdefault(key, []).append(value)
                    commits.setdefault(key, []).append(at_ns)
        for key in list(values):
            mops = [["r", key, None]]
            file.write(_event("invoke", 0, mops, at_ns := at_ns + 1000))
            file.write(_event("ok", 0, _apply(mops, values, lists=True), at_ns := at_ns + 1000))
    return path


def _apply(mops: list[list[Any]], state: dict[int, Any], *, lists: bool) -> list[list[Any]]:
    answer = []
    for f, key, value in mops:
        if f == "r":
            answer.append([f, key, list(state.get(key, [])) if lists else state.get(key)])
            continue
        state[key] = [*state.get(key, []), value] if lists else value
        answer.append([f, key, value])
    return answer


def _ring(folder: Path, count: int) -> Path:
    """Writes transactions that are open at the same time, each of which saw the append of the one before it: a cycle of all."""
    path = folder / "history.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            request = [["append", number, 1], ["r", (number - 1) % count, None]]
            file.write(_event("invoke", number, request, number))
        for number in range(count):
            answer = [["append", number, 1], ["r", (number - 1) % count, [1]]]
            file.write(_event("ok", number, answer, count + number))
    return path


def _event(kind: str, process: int, value: list[list[Any]], at_ns: int) -> str:
    event = {"type": kind, "process": process, "f": "txn", "value": value, "time": at_ns}
    return json.dumps(event, separators=(",", ":")) + "\n"


def built_adya(folder: Path) -> str | None:
    """Builds adya, and returns its program; None, with a sentence, if that is impossible."""
    if shutil.which("cargo") is None:
        print("adya is not measured: there is no `cargo` on this machine.\n")
        return None
    done = subprocess.run(
        ["cargo", "install", "adya", "--version", ADYA, "--locked", "--no-default-features", "--root", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(f"adya is not measured: `cargo install` failed: {done.stderr.strip()[-500:]}\n")
        return None
    return str(folder / "bin" / "adya")


def _labrys(row: Row) -> list[str]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "cli",
        "check",
        str(row.path),
        "--workload",
        row.workload,
        "--workload-option",
        f"consistency-model={row.model}",
        "--format",
        "json",
    ]
    for option in row.options:
        command += ["--workload-option", f"{option}=true"]
    return command


def _of_adya(program: str, row: Row) -> list[str]:
    options = [f"--{option}" for option in row.options]
    return [program, "check", "--json", "-m", row.workload, "-c", row.model, *options, str(row.path)]


def _measured(command: Sequence[str], limit_s: float, repeats: int) -> Measured:
    """Runs a command several times, and returns the fastest result."""
    return min((_once(command, limit_s) for _ in range(repeats)), key=lambda run: run.wall_s)


def _once(command: Sequence[str], limit_s: float) -> Measured:
    began_s = time.perf_counter()
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(["timeout", str(limit_s), *command], stdout=output, stderr=subprocess.DEVNULL) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        judged_s = _judged_s(output.read())
    verdict = {0: "valid", 1: "invalid", 2: "unknown", 124: "stopped"}.get(process.returncode, "failed")
    return Measured(
        verdict=verdict,
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        bytes=usage.ru_maxrss * 1024,
        judged_s=judged_s,
    )


def _judged_s(output: bytes) -> float | None:
    """Returns the seconds that the result of `labrys check` names; None for another output."""
    try:
        answer = json.loads(output)
    except ValueError:
        return None
    return answer.get("seconds") if isinstance(answer, dict) and answer.get("analyzer") else None


def _line(row: Row, ours: Measured, theirs: Measured | None) -> str:
    def shown(measurement: Measured) -> str:
        mark = "" if measurement.verdict == row.verdict else f" ({measurement.verdict})"
        return f"{measurement.wall_s:.2f}, {measurement.cpu_s:.2f}, {measurement.bytes / MEBI:.0f}{mark}"

    judged = "" if ours.judged_s is None else f"{ours.judged_s:.2f}"
    if theirs is None:
        return f"| {row.name} | {shown(ours)} | {judged} | | | |"
    seconds, memory = theirs.wall_s / ours.wall_s, theirs.bytes / ours.bytes
    return f"| {row.name} | {shown(ours)} | {judged} | {shown(theirs)} | {seconds:.1f} | {memory:.1f} |"


if __name__ == "__main__":
    sys.exit(main())
