"""A history in JSON Lines, read in parts: the rows are those of the whole history, wherever it is cut, or there are none."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from harness.op import NEMESIS, Op, OpType
from results.pipeline.read.events import BAD, OPERATION, ROWS
from results.pipeline.read.parts import LINE, OPEN, PART, PART_ROWS, UNPLAIN, ends_of, joined, read_part
from tests.unit.pipeline.test_read_events import HEADER, lines_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

VALUES: Sequence[Any] = (
    None, 3, -7, [1, 2], [["r", "x", None], ["append", "y", 3]], "a b", "é\\", 1.5, [], [[[]]], {"b": 1, "a": [None]}, True,
    10**20, "null",
)  # fmt: skip
GIVEN = pa.schema({"line": pa.binary(), "begin": pa.int64()})


def random_lines(rng: random.Random, *, careless: float) -> list[bytes]:
    """Returns the lines of a history whose processes and writer are careless now and then."""
    ops: list[Op] = []
    open_: dict[int, Op] = {}
    free = list(range(rng.randrange(1, 5)))
    for index in range(rng.randrange(60)):
        process = rng.choice(free)
        at = index * 10 - (rng.randrange(30) if rng.random() < careless else 0)
        if rng.random() < 0.1:
            ops.append(Op(index, max(0, at), OpType.INFO, NEMESIS, "start-partition", {"targets": ["n1"]}))
            continue
        before = open_.pop(process, None)
        if before is None or rng.random() < careless:
            op = Op(
                index, max(0, at), OpType.INVOKE, process, rng.choice("fg"), rng.choice(VALUES), rng.choice([None, "k", "l"]),
                rng.choice([None, "n1"]), None, rng.choice([None, 5]), rng.choice([None, "final"]),
            )  # fmt: skip
            open_[process] = op
        else:
            kind = rng.choice((OpType.OK, OpType.OK, OpType.FAIL, OpType.INFO))
            value = rng.choice(VALUES) if kind is OpType.OK or rng.random() < careless else before.value
            op = before._replace(
                index=index, time_ns=max(0, at), type=kind, value=value, error=rng.choice([None, "e"]), scheduled_ns=None,
                phase=None, via=rng.choice([None, "v"]), order=rng.choice([None, None, index]),
            )  # fmt: skip
            if kind is OpType.INFO and rng.random() >= careless:
                free[free.index(process)] = 10 + index
        ops.append(op)
    lines = lines_of(ops)
    if lines and rng.random() < careless:
        place = rng.randrange(len(lines))
        lines[place] = rng.choice(
            (lines[place][:-9] + b"\n", b"\n", b"{}\n", lines[place].replace(b":", b": ", 2), HEADER)
        )
    if lines and rng.random() < 0.2:
        lines[-1] = lines[-1][: rng.randrange(1, len(lines[-1]))]
    return lines


def in_parts(lines: Sequence[bytes], rng: random.Random, keyed: bool = False) -> list[dict[str, Any]] | None:  # noqa: FBT002 - as in the reader
    """Returns the rows of a history that is cut after any of its lines; None if it is not plain."""
    cuts = sorted({0, *(rng.randrange(len(lines) + 1) for _ in range(rng.randrange(4)))})
    rows_of_parts: list[dict[str, Any]] = []
    for first, last in zip(cuts, [*cuts[1:], len(lines)], strict=True):
        begin = sum(map(len, lines[:first]))
        some = [{"line": line.removesuffix(b"\n"), "begin": begin} for line in lines[first:last]]
        size = rng.randrange(1, 20)
        batches = [pa.RecordBatch.from_pylist(some[at : at + size], GIVEN) for at in range(0, len(some), size)]
        for rows in read_part(iter(batches), "r", "h", keyed=keyed):
            assert rows.schema == PART_ROWS
            rows_of_parts += rows.to_pylist()
    ends = ends_of([row for row in rows_of_parts if row["row"] in {PART, UNPLAIN}])
    if ends is None:
        return None
    crossing = set(ends.crossing)
    wanted = [row for row in rows_of_parts if row["row"] == LINE or (row["begin"], row["process"]) in crossing]
    rest = joined(ends, [row for row in wanted if row["row"] in {LINE, OPEN}], "r", "h", keyed=keyed)
    if rest is None:
        return None
    kept = [
        {name: row[name] for name in ROWS.names} | {"row": OPERATION}
        for row in rows_of_parts
        if row["row"] == OPERATION or (row["row"] == OPEN and (row["begin"], row["process"]) not in crossing)
    ]
    return kept + [row for batch in rest for row in batch.to_pylist()]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    """Returns rows in an order of their own."""
    return sorted(map(repr, rows))


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.night) for seed in range(4, 100))])
def test_parts_have_the_rows_of_the_whole(seed: int) -> None:
    """Random histories, some of them broken; a sound one is always read in parts, with or without a torn end."""
    rng = random.Random(seed)
    plain = 0
    for _ in range(100):
        careless = rng.choice((0, 0.05))
        lines = [HEADER, *random_lines(rng, careless=careless)]
        # Spark gives lines without their ends, so its readers add one to each.
        expected = rows_of(b"".join(line.removesuffix(b"\n") + b"\n" for line in lines))
        rows = in_parts(lines, rng)
        if rows is None:
            assert careless or any(row["row"] == BAD for row in expected), lines
            continue
        assert in_order(rows) == in_order(expected), lines
        plain += 1
    assert plain > 50


def test_values_with_pairs_of_a_key_and_a_value_are_lifted() -> None:
    """In a part and across its ends."""
    kinds = (OpType.INVOKE, OpType.OK)
    ops = [Op(at, at * 10, kinds[at % 2], 1, "f", ["k", at // 2]) for at in range(18)]
    for seed in range(9):
        rows = in_parts([HEADER, *lines_of(ops)], random.Random(seed), keyed=True)
        assert rows is not None
        operations = [(row["key"], row["value"], row["result"]) for row in rows if row["row"] == OPERATION]
        assert sorted(operations) == [("k", str(at), str(at)) for at in range(9)]
