"""Joining values into chains, in whatever parts, says what the kernel says of the same operations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from checker._kernel import Problem
from checker.models.opcodes import CAS, READ, WRITE
from checker.search.solving import Limits, solve
from harness.randomness import stream
from results.pipeline.decide.coding import INF, NEG
from results.pipeline.large_keys import chains
from results.pipeline.large_keys.contraction import (
    BLOCK,
    CONTRADICTIONS,
    ORDER,
    ROOTED,
    UNSOLVED,
    UNWRITTEN,
    contract,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    import pytest

    from results.pipeline.large_keys.contraction import Pieces

INITIAL = 0


@dataclass(frozen=True, slots=True)
class Op:
    """A coded operation."""

    opcode: int
    first_argument: int
    second_argument: int
    start: int
    end: int

    @property
    def value(self) -> int:
        """Returns the value that it makes or sees."""
        return self.second_argument if self.opcode == CAS else self.first_argument


def random_history(random: Random, size: int) -> list[Op]:
    """Returns a history of a register with unique values, with lies and crashes, whose ends may meet other's starts."""
    written, state, ops = [INITIAL], INITIAL, []
    lies = random.choice([0.0, 0.05, 0.3])
    crashes = random.choice([0.0, 0.2, 0.6])
    spread = random.choice([0.6, 2.0, 5.0])
    for place in range(size):
        opcode = random.choice([READ, WRITE, CAS, CAS])
        start = 2 * int(2 * (place - spread * random.random()) + 20)
        end = max(start + 1, 2 * int(2 * (place + spread * random.random()) + 20) + random.choice([0, 1]))
        crashed = random.random() < crashes
        lie = random.random() < lies
        seen = random.choice([*written, 1000 + place, size]) if lie else state
        if opcode == READ:
            if not crashed:
                ops.append(Op(READ, seen, 0, start, end))
            continue
        new = place + 1
        if crashed:
            end = INF
        ops.append(Op(WRITE, new, 0, start, end) if opcode == WRITE else Op(CAS, seen, new, start, end))
        if not crashed or random.random() < 0.5:
            state = new
            written.append(new)
    return ops


def by_kernel(ops: Sequence[Op]) -> str:
    """Returns what the kernel's near-linear analyzer says."""
    ordered = sorted(ops, key=lambda op: (op.start, op.end))
    names = ("first_argument", "second_argument", "start", "end")
    columns = [np.array([getattr(op, name) for op in ordered], np.int64) for name in names]
    codes = np.array([op.opcode for op in ordered], np.uint8)
    [outcome] = solve([Problem("register", codes, *columns, initial=[INITIAL])], Limits(algorithm="zones", threads=1))
    assert outcome["unsuited"] is None
    return outcome["verdict"]


@dataclass(slots=True)
class Value:
    """What is known of one value, as `results.pipeline.large_keys.chains` knows it."""

    write_start: int = INF
    write_end: int = INF
    expected: int | None = None
    written: bool = False
    last_read_start: int = NEG
    first_read_end: int = INF
    kids: int = 0
    sure: int = 0
    first_expecting_end: int = INF


def values_of(ops: Sequence[Op]) -> dict[int, Value]:
    """Returns all values that are written, seen or expected."""
    values: dict[int, Value] = {}
    for op in ops:
        value = values.setdefault(op.value, Value())
        if op.opcode == READ:
            value.last_read_start = max(value.last_read_start, op.start)
            value.first_read_end = min(value.first_read_end, op.end)
            continue
        value.write_start, value.write_end, value.written = op.start, op.end, True
        if op.opcode == CAS:
            value.expected = op.first_argument
            source = values.setdefault(op.first_argument, Value())
            source.kids += 1
            if op.end != INF:
                source.sure += 1
                source.first_expecting_end = min(source.first_expecting_end, op.end)
    return values


def pieces_of(values: Mapping[int, Value], key: int) -> list[dict[str, int]]:
    """Returns a piece for each value, chained or not."""
    rows = []
    for number, value in values.items():
        initial = number == INITIAL
        previous = ROOTED if initial or (value.written and value.expected is None) else UNWRITTEN
        alive = True
        if value.expected is not None:
            previous = value.expected
            alive = value.write_end != INF or value.first_read_end != INF or value.sure > 0
        rows.append(
            {
                "address": key,
                "write_start": value.write_start,
                "previous_value": previous,
                "first_value": number,
                "last_value": number,
                "waits": value.kids,
                "alive": int(alive),
                "min_end": NEG if initial else min(value.write_end, value.first_read_end),
                "min_end_value": number,
                "max_start": max(value.write_start if value.written else NEG, value.last_read_start),
                "max_start_value": number,
            }
        )
    return rows


def columns_of(rows: Sequence[Mapping[str, int]]) -> Pieces:
    """Returns rows as columns."""
    return {name: np.array([row[name] for row in rows], np.int64) for name in rows[0]}


def merged(parts: Sequence[Pieces]) -> dict[str, Any]:
    """Puts pieces of several parts together."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def contracted(random: Random, rows: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """Joins rows in random parts, the parts in coarser ones, and what is left at once."""
    done = []
    parts = [columns_of(rows)]
    for _ in range(random.randrange(4)):
        pieces = merged(parts)
        places = np.array([random.randrange(3) for _ in pieces["address"]])
        answers = [contract({n: c[places == k] for n, c in pieces.items()}, whole=False) for k in range(3)]
        parts = [answer.left for answer in answers]
        done += [answer.done for answer in answers]
    done.append(contract(merged(parts), whole=True).done)
    return merged(done)


def blocks_of(done: Mapping[str, Any]) -> dict[int, list[dict[str, int]]]:
    """Returns the blocks of each key that others can meet."""
    blocks: dict[int, list[dict[str, int]]] = {}
    for place in np.flatnonzero((done["outcome"] == BLOCK) & (done["min_end"] != INF)).tolist():
        row = {name: int(column[place]) for name, column in done.items()}
        blocks.setdefault(row["address"], []).append(row)
    return blocks


def met(blocks: Sequence[Mapping[str, int]]) -> tuple[Mapping[str, int], Mapping[str, int]] | None:
    """Returns two blocks that must each come before the other."""
    pairs = ((one, two) for i, one in enumerate(blocks) for two in blocks[:i])

    def ends_first(one: Mapping[str, int], two: Mapping[str, int]) -> bool:
        return one["min_end"] < two["max_start"]

    return next(((one, two) for one, two in pairs if ends_first(one, two) and ends_first(two, one)), None)


def verdicts_of(values: Sequence[Mapping[int, Value]], done: Mapping[str, Any]) -> list[str]:
    """Decides keys from what became of their pieces."""
    bad = set(done["address"][np.isin(done["outcome"], CONTRADICTIONS)].tolist())
    assert UNSOLVED not in done["outcome"]
    blocks = blocks_of(done)
    answers = []
    for key, known in enumerate(values):
        for number, value in known.items():
            seen = min(value.first_read_end, value.first_expecting_end)
            unwritten = not value.written and number != INITIAL and seen != INF
            early = value.written and seen < value.write_start
            if unwritten or early:
                bad.add(key)
        if met(blocks.get(key, [])) is not None:
            bad.add(key)
        answers.append("invalid" if key in bad else "valid")
    return answers


def marked(rows: Sequence[dict[str, int]], ops: Sequence[Op], afters: Sequence[int]) -> list[dict[str, int]]:
    """Adds to pieces from when on something of them is seen that began after an index."""
    asked = []
    for row in rows:
        own = [op for op in ops if op.value == row["last_value"]]
        marks: dict[str, int] = {}
        for mark, after in enumerate(afters):
            since = [op.end for op in own if op.opcode == READ and op.start > after]
            since += [NEG for op in own if op.opcode == WRITE and op.start > after]
            opened = any(op.opcode == CAS and op.start > after for op in own)
            since += [row["min_end"]] * opened
            marks |= {f"since_{mark}": min(since, default=INF), f"opened_{mark}": int(opened)}
        asked.append({**row, **marks})
    return asked


def until(ops: Sequence[Op], end: int) -> list[Op]:
    """Returns the history up to and with a return."""
    begun = [op if op.end <= end else replace(op, end=INF) for op in ops if op.start <= end]
    return [op for op in begun if op.opcode != READ or op.end != INF]


def assert_told_in_time(runs: Sequence[Sequence[Op]], done: Mapping[str, Any]) -> None:
    """Holds what is told of to be there by the return that it is told with."""
    names = ("address", "outcome", "min_end", "max_start_value", "max_start")
    for address, outcome, end, value, start in zip(*(done[name] for name in names), strict=True):
        ops, shown = runs[address], int(end)
        if outcome == ORDER:
            late = [op.end if op.opcode == READ else NEG for op in ops if op.value == value and op.start > end]
            assert start > end
            shown = max(shown, min(late))
        if outcome in CONTRADICTIONS:
            assert by_kernel(until(ops, shown)) == "invalid", (outcome, shown, ops)


def test_joining_says_what_the_kernel_says() -> None:
    """Thousands of small histories, many at once, joined in random parts: every verdict is the kernel's."""
    random = stream(1, "contraction")
    kinds: Counter[int] = Counter()
    told: Counter[str] = Counter()
    for _ in range(60):
        runs = [random_history(random, random.randint(1, 14)) for _ in range(60)]
        values = [values_of(ops) for ops in runs]
        rows = [row for key, known in enumerate(values) for row in pieces_of(known, key)]
        done = contracted(random, rows)
        expected = [by_kernel(ops) for ops in runs]
        ours = verdicts_of(values, done)
        assert_told_in_time(runs, done)
        for ops, one, other in zip(runs, ours, expected, strict=True):
            assert one == other, ops
        kinds.update(done["outcome"].tolist())
        told.update(ours)
    assert {BLOCK, *CONTRADICTIONS} <= kinds.keys()
    assert min(told.values()) > 500


def test_it_is_known_from_when_on_two_chains_meet() -> None:
    """The return that is told for two chains that meet is the first by which they do, as far as they alone are looked at."""
    random = stream(2, "contraction")
    looked_at = exact = 0
    while looked_at < 40:
        ops = random_history(random, random.randint(4, 14))
        if not ops:
            continue
        rows = pieces_of(values_of(ops), 0)
        done = contracted(random, rows)
        pair = met(blocks_of(done).get(0, []))
        if pair is None:
            continue
        afters = (pair[1]["min_end"], pair[0]["min_end"])
        asked = contracted(random, marked(rows, ops, afters))
        known = {each["first_value"]: each for each in blocks_of(asked)[0]}
        end = max(*afters, *(known[block["first_value"]][f"since_{mark}"] for mark, block in enumerate(pair)))
        assert by_kernel(until(ops, end)) == "invalid", ops
        exact += by_kernel(until(ops, end - 1)) == "valid"
        looked_at += 1
    assert exact > looked_at // 3


def chain_of(size: int, key: int, at: Callable[[int], int]) -> list[dict[str, int]]:
    """Returns the pieces of a chain from the initial value on, each compare-and-set right after the one before."""
    ops = [Op(CAS, place, place + 1, 2 * place, 2 * place + 1) for place in range(size)]
    rows = [{**row, "address": key, "write_start": at(row["last_value"])} for row in pieces_of(values_of(ops), key)]
    return sorted(rows, key=lambda row: row["write_start"])


def test_a_worker_keeps_only_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain far longer than what is kept is joined as it comes; one whose neighbours stay away is given up, alone."""
    monkeypatch.setattr(chains, "_ROWS_PER_CALL", 7)
    rows = chain_of(1000, 1, lambda v: v)
    rows += chain_of(1000, 2, lambda v: v if v % 2 else 10_000 + v)
    rows += chain_of(1000, 3, lambda v: v ^ 3)
    random = stream(3, "contraction")
    batches = []
    while rows:
        size = random.randint(1, 20)
        columns = columns_of(rows[:size])
        batches.append(pa.RecordBatch.from_arrays([pa.array(c) for c in columns.values()], names=list(columns)))
        rows = rows[size:]
    answers = [row for batch in chains._join_all(iter(batches), most=50) for row in batch.to_pylist()]
    assert sorted((row["address"], row["outcome"], row["last_value"]) for row in answers if row["address"] != 2) == [
        (1, BLOCK, 1000),
        (3, BLOCK, 1000),
    ]
    assert [row["outcome"] for row in answers if row["address"] == 2] == [UNSOLVED]
