"""Histories for measurements: those of a simulated object, some with mistakes, and the corpora with known verdicts.

A case is one or more histories with a model for each side. Every history is drawn from a seed, so both sides and every run get
the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from checker.formats.read import read_histories
from checker.models import Call, Inconsistent, Model, model
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One or more histories that both sides decide.

    Attributes:
        name: The row of the table. Consecutive cases of the same name are one row.
        histories: The operations of each history.
        model: Labrys's model.
        porcupine: The name of porcupine's model.
        made: The parameters of porcupine's model, if any.
        valid: The verdict by construction; None if unknown.
        share: The part of the time limit for each history.
        whole: Whether Labrys does the whole work of `labrys check`, not only the search.
    """

    name: str
    histories: Sequence[Sequence[Operation]]
    model: Model
    porcupine: str = "cas-register"
    made: str = ""
    valid: bool | None = None
    share: float = 1.0
    whole: bool = False


class WholeStore(Model):
    """A store of strings as one object: porcupine's model without its partition function."""

    name = "whole-store"
    initial = frozenset()  # pairs of key and value

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        key, argument = op.argument
        now = next((value for name, value in state if name == key), "")
        if op.f == "get":
            return state if not op.ok or op.result == now else Inconsistent(f"{key} is {now!r}")
        new = argument if op.f == "put" else now + argument
        return frozenset({*(pair for pair in state if pair[0] != key), (key, new)})

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "get"


def cases(corpora: Path) -> Iterator[Case]:
    """Yields the rows: porcupine's own histories, then generated ones.

    Args:
        corpora: Porcupine's folder of test data.
    """
    logs = [_read(path) for path in sorted(corpora.glob("jepsen/*.log")) if path.stat().st_size > 0]
    yield Case(name=f"consoles, {len(logs)} logs", histories=logs, model=_observed())
    for path in sorted(corpora.glob("kv/*.txt")):
        store = [_read(path)]
        yield Case(name=f"kv {path.stem}, by key", histories=store, model=model("kv"), porcupine="kv")
    for path in sorted(corpora.glob("kv/c[15]0-*.txt")):
        # Labrys always splits a history by its keys. Porcupine gets no function that does so.
        store = [_read(path)]
        yield Case(name=f"kv {path.stem}, unpartitioned", histories=store, model=model("kv"), porcupine="kv-whole")
    for path in sorted(corpora.glob("kv/c10-*.txt")):
        whole = [[replace(op, key=None, value=(op.key, op.value)) for op in _read(path)]]
        yield Case(name=f"kv {path.stem}, one object", histories=whole, model=WholeStore(), porcupine="kv-whole")
    for crashed in (0, 5, 10, 20, 40):
        operations = crashed_writes_first(500, crashed, 5, f"crashed {crashed}")
        for what, history in (("valid", operations), ("invalid", with_stale_reads(operations, crashed + 1))):
            yield Case(name=f"5 values, {crashed} crashed, {what}", histories=[history], model=_observed())
    for processes, count in ((10, 20_000), (30, 10_000), (100, 5_000)):
        draw = small_domain(5, cas=False)
        history = simulate(draw, apply_register, count=count, processes=processes, seed=f"long {processes}")
        yield Case(name=f"5 values, {count:,} by {processes}, valid", histories=[history], model=_observed())
    history = simulate(small_domain(5), apply_register, count=10_000, processes=20, seed="cas")
    yield Case(name="5 values with cas, 10,000 by 20, valid", histories=[history], model=_observed())
    strings_of_ten = simulate(strings(10), apply_kv, count=10_000, processes=30, seed="strings")
    yield Case(name="10 strings, 10,000 by 30, valid", histories=[strings_of_ten], model=model("kv"), porcupine="kv")


def _observed() -> Model:
    """Returns the register of porcupine's model: a failed cas shows that the value was another."""
    return model("cas-register", failed_cas="observe")


def _read(path: Path) -> Sequence[Operation]:
    [history] = read_histories(str(path))
    return history.operations


@dataclass(slots=True)
class _Open:
    start: int
    f: str
    value: Any
    key: str | None
    result: Any = None
    done: bool = False
    crashes: bool = False
    order: int | None = None


def simulate(
    draw: Callable[[Random, int], tuple[str, Any, str | None]],
    apply: Callable[[dict[str | None, Any], str, Any, str | None], tuple[str, Any]],
    *,
    count: int,
    processes: int,
    seed: str,
    crash: Callable[[Random, int, str], bool] = lambda _random, _number, _f: False,
    order: Callable[[], int] | None = None,
) -> list[Operation]:
    """Returns a linearizable history of an object: every operation takes effect once between its start and its end.

    Args:
        draw: Returns the next operation from its number: f, value and key.
        apply: Applies f, value and key to the state by key; returns `ok` or `fail` and the result.
        count: The number of operations.
        processes: The number of processes.
        seed: The seed of the history.
        crash: Returns whether an operation never returns. Half of those take effect.
        order: Returns the object's number of its last operation; None: the object has none.
    """
    random = Random(seed)
    open_now: dict[int, _Open] = {}
    idle = list(range(processes))
    state: dict[str | None, Any] = {}
    operations: list[Operation] = []
    event = number = fresh = 0
    fresh = processes
    while number < count or open_now:
        if idle and number < count and (not open_now or random.random() < 0.5):
            process = idle.pop(random.randrange(len(idle)))
            f, value, key = draw(random, number)
            crashes = crash(random, number, f)
            open_now[process] = _Open(start=event, f=f, value=value, key=key, crashes=crashes)
            number += 1
            event += 1
            continue
        process = random.choice(list(open_now))
        op = open_now[process]
        if not op.done:
            op.done = True
            if not op.crashes or random.random() < 0.5:
                kind, op.result = apply(state, op.f, op.value, op.key)
                if kind == "fail":
                    op.f = f"{op.f}!"
            if order is not None and not op.crashes:
                op.order = order()
            continue
        del open_now[process]
        failed = op.f.endswith("!")
        kind = OpType.INFO if op.crashes else OpType.FAIL if failed else OpType.OK
        operations.append(
            Operation(
                process=process,
                f=op.f.rstrip("!"),
                value=op.value,
                result=op.result if kind is OpType.OK else None,
                type=kind,
                start_ns=op.start,
                end_ns=None if op.crashes else event,
                invoke_index=op.start,
                complete_index=None if op.crashes else event,
                key=op.key,
                order=op.order,
            )
        )
        idle.append(fresh if op.crashes else process)
        fresh += op.crashes
        event += 1
    operations.sort(key=lambda op: op.invoke_index)
    return operations


def apply_register(state: dict[str | None, Any], f: str, value: Any, key: str | None) -> tuple[str, Any]:
    """Applies an operation to a register with cas, initially nil."""
    now = state.get(key)
    if f == "read":
        return "ok", now
    if f == "write":
        state[key] = value
        return "ok", value
    expected, new = value
    if now != expected:
        return "fail", None
    state[key] = new
    return "ok", value


def apply_kv(state: dict[str | None, Any], f: str, value: Any, key: str | None) -> tuple[str, Any]:
    """Applies an operation to a store of strings."""
    now = state.get(key, "")
    if f == "get":
        return "ok", now
    state[key] = value if f == "put" else now + value
    return "ok", value


def small_domain(values: int, *, cas: bool = True) -> Callable[[Random, int], tuple[str, Any, str | None]]:
    """Returns a draw of reads, writes and cas over a few values, like Jepsen's register tests."""

    def draw(random: Random, _number: int) -> tuple[str, Any, str | None]:
        f = random.choice(["read", "write", "cas"] if cas else ["read", "write"])
        if f == "cas":
            return f, (random.randrange(values), random.randrange(values)), None
        return f, None if f == "read" else random.randrange(values), None

    return draw


def strings(keys: int) -> Callable[[Random, int], tuple[str, Any, str | None]]:
    """Returns a draw of gets, puts and appends over some keys, like porcupine's histories; pieces sometimes repeat."""

    def draw(random: Random, number: int) -> tuple[str, Any, str | None]:
        key = str(random.randrange(keys))
        f = random.choices(["get", "append", "put"], [40, 50, 10])[0]
        return f, None if f == "get" else f"x {number % 997} {number // 7} y", key

    return draw


def with_stale_reads(operations: Sequence[Operation], count: int) -> list[Operation]:
    """Adds `count` pairs at the end, a write of 1 and a read of 0. Each crashed write of 0 explains one of the reads."""
    changed = list(operations)
    process = max(int(op.process) for op in changed) + 1
    at = max(op.complete_index or op.invoke_index for op in changed) + 1
    for index in range(at, at + 4 * count, 4):
        for f, value, start in (("write", 1, index), ("read", 0, index + 2)):
            changed.append(
                Operation(
                    process=process,
                    f=f,
                    value=value if f == "write" else None,
                    result=value,
                    type=OpType.OK,
                    start_ns=start,
                    end_ns=start + 1,
                    invoke_index=start,
                    complete_index=start + 1,
                )
            )
    return changed


def crashed_writes_first(count: int, crashed: int, values: int, seed: str) -> list[Operation]:
    """Returns operations of five processes after `crashed` writes that never returned."""
    return simulate(
        small_domain(values),
        apply_register,
        count=count + crashed,
        processes=5,
        seed=seed,
        crash=lambda _random, number, _f: number < crashed,
    )


def porcupine_lines(model: Model, operations: Iterable[Operation]) -> Iterator[str]:
    """Yields the lines of a history in the format of the porcupine driver."""
    for op in operations:
        failed = op.type is OpType.FAIL
        if (failed and op.f not in model.keeps_failed) or (op.type is OpType.INFO and op.f in {"read", "get"}):
            continue
        end = -1 if op.type is OpType.INFO else op.complete_index
        argument = op.value if op.key is None else (op.key, op.value)
        result = "fail" if failed else _cell(op.result)
        yield f"{op.process}\t{op.invoke_index}\t{end}\t{op.f}\t{_cell(argument)}\t{result}\n"


def _cell(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return ",".join(map(_cell, value))
    return "" if value is None else str(value)
