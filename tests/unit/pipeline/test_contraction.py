"""Joining values into chains, in whatever parts, says what the kernel says of the same operations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from checker._kernel import Problem
from checker.models.opcodes import CAS, READ, WRITE
from checker.solving import Limits, solve
from harness.randomness import stream
from results.pipeline.coding import INF, NEG
from results.pipeline.contraction import (
    BLOCK,
    COLUMNS,
    CONTRADICTIONS,
    ROOTED,
    UNSOLVED,
    UNWRITTEN,
    contract,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from results.pipeline.contraction import Pieces

INITIAL = 0


@dataclass(frozen=True, slots=True)
class Op:
    """A coded operation."""

    f: int
    a: int
    b: int
    s: int
    e: int

    @property
    def value(self) -> int:
        """Returns the value that it makes or sees."""
        return self.b if self.f == CAS else self.a


def random_history(random: Random, size: int) -> list[Op]:
    """Returns a history of a register with unique values, with lies and crashes, whose ends may meet other's starts."""
    written, state, ops = [INITIAL], INITIAL, []
    lies = random.choice([0.0, 0.05, 0.3])
    crashes = random.choice([0.0, 0.2, 0.6])
    spread = random.choice([0.6, 2.0, 5.0])
    for place in range(size):
        f = random.choice([READ, WRITE, CAS, CAS])
        s = 2 * int(2 * (place - spread * random.random()) + 20)
        e = max(s + 1, 2 * int(2 * (place + spread * random.random()) + 20) + random.choice([0, 1]))
        crashed = random.random() < crashes
        lie = random.random() < lies
        seen = random.choice([*written, 1000 + place, size]) if lie else state
        if f == READ:
            if not crashed:
                ops.append(Op(READ, seen, 0, s, e))
            continue
        new = place + 1
        ops.append(
            Op(WRITE, new, 0, s, INF if crashed else e) if f == WRITE else Op(CAS, seen, new, s, INF if crashed else e)
        )
        if not crashed or random.random() < 0.5:
            state = new
            written.append(new)
    return ops


def by_kernel(ops: Sequence[Op]) -> str:
    """Returns what the kernel's near-linear analyzer says."""
    ordered = sorted(ops, key=lambda op: (op.s, op.e))
    columns = [np.array([getattr(op, name) for op in ordered], np.int64) for name in ("a", "b", "s", "e")]
    codes = np.array([op.f for op in ordered], np.uint8)
    [outcome] = solve([Problem("register", codes, *columns, initial=[INITIAL])], Limits(algorithm="zones", threads=1))
    assert outcome["unsuited"] is None
    return outcome["verdict"]


@dataclass(slots=True)
class Value:
    """What is known of one value, as `results.pipeline.chains` knows it."""

    ws: int = INF
    we: int = INF
    expected: int | None = None
    written: bool = False
    rs: int = NEG
    re: int = INF
    kids: int = 0
    sure: int = 0
    ke: int = INF


def values_of(ops: Sequence[Op]) -> dict[int, Value]:
    """Returns all values that are written, seen or expected."""
    values: dict[int, Value] = {}
    for op in ops:
        value = values.setdefault(op.value, Value())
        if op.f == READ:
            value.rs, value.re = max(value.rs, op.s), min(value.re, op.e)
            continue
        value.ws, value.we, value.written = op.s, op.e, True
        if op.f == CAS:
            value.expected = op.a
            source = values.setdefault(op.a, Value())
            source.kids += 1
            if op.e != INF:
                source.sure += 1
                source.ke = min(source.ke, op.e)
    return values


def pieces_of(values: Mapping[int, Value], key: int) -> list[dict[str, int]]:
    """Returns a piece for each value, chained or not."""
    rows = []
    for v, value in values.items():
        initial = v == INITIAL
        head = ROOTED if initial or (value.written and value.expected is None) else UNWRITTEN
        alive = True
        if value.expected is not None:
            head = value.expected
            alive = value.we != INF or value.re != INF or value.sure > 0
        rows.append(
            {
                "h": key,
                "at": value.ws,
                "head": head,
                "first": v,
                "tail": v,
                "waits": value.kids,
                "alive": int(alive),
                "ends": NEG if initial else min(value.we, value.re),
                "ends_v": v,
                "starts": max(value.ws if value.written else NEG, value.rs),
                "starts_v": v,
            }
        )
    return rows


def columns_of(rows: Sequence[Mapping[str, int]]) -> Pieces:
    """Returns rows as columns."""
    return {name: np.array([row[name] for row in rows], np.int64) for name in COLUMNS}


def merged(parts: Sequence[Pieces]) -> dict[str, Any]:
    """Puts pieces of several parts together."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def contracted(random: Random, rows: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """Joins rows in random parts, the parts in coarser ones, and what is left at once."""
    done = []
    parts = [columns_of(rows)]
    for _ in range(random.randrange(4)):
        pieces = merged(parts)
        places = np.array([random.randrange(3) for _ in pieces["h"]])
        answers = [contract({n: c[places == k] for n, c in pieces.items()}, whole=False) for k in range(3)]
        parts = [answer.left for answer in answers]
        done += [answer.done for answer in answers]
    done.append(contract(merged(parts), whole=True).done)
    return merged(done)


def verdicts_of(values: Sequence[Mapping[int, Value]], done: Mapping[str, Any]) -> list[str]:
    """Decides keys from what became of their pieces."""
    bad = set(done["h"][np.isin(done["kind"], CONTRADICTIONS)].tolist())
    assert UNSOLVED not in done["kind"]
    blocks: dict[int, list[tuple[int, int]]] = {}
    for h, kind, least, greatest in zip(done["h"], done["kind"], done["ends"], done["starts"], strict=True):
        if kind == BLOCK:
            blocks.setdefault(int(h), []).append((int(least), int(greatest)))
    answers = []
    for key, known in enumerate(values):
        for v, value in known.items():
            unwritten = not value.written and v != INITIAL and min(value.re, value.ke) != INF
            early = value.written and min(value.re, value.ke) < value.ws
            if unwritten or early:
                bad.add(key)
        zones = [(m, big) for m, big in blocks.get(key, []) if m != INF]
        if any(one[0] < two[1] and two[0] < one[1] for i, one in enumerate(zones) for two in zones[:i]):
            bad.add(key)
        answers.append("invalid" if key in bad else "valid")
    return answers


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
        for ops, one, other in zip(runs, ours, expected, strict=True):
            assert one == other, ops
        kinds.update(done["kind"].tolist())
        told.update(ours)
    assert {BLOCK, *CONTRADICTIONS} <= kinds.keys()
    assert min(told.values()) > 500
