"""Divides the graph by time, and finds the cycles of each part; see the package for the reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from checker._kernel import TransactionGraph
from checker.consistency import REALTIME
from checker.formats.columns import OK
from results.pipeline.spark.large_transactions.pieces import (
    BACK,
    EDGE,
    ENTRY,
    EXIT,
    FORTH,
    GROUP,
    NONE,
    NUMBERS,
    OVER,
    READ,
    READER,
    REF,
    SLICED,
    VERTEX,
    WITHIN,
    WRITE,
    WRITER,
    Places,
    joined,
    numbers_of,
    only,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from results.pipeline.spark.large_transactions.pieces import Numbers

BYTES_PER_PIECE: Final = 400  # the memory of a piece in a slice, with the graph
# By the kind of an edge in the kernel: the type of its cycle with real time, and its name.
_AGAINST_TIME: Final = {
    1: ("G0-realtime", "ww"),
    2: ("G1c-realtime", "wr"),
    4: ("G-single-item-realtime", "rw"),
}
SIDE: Final = ("", "_end", "_process", "_kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slicing:
    """How the graph is divided.

    Attributes:
        width: The number of places of a slice.
        extra: What orders transactions besides their data: `none` or `realtime`. Edges of processes are pieces.
        unordered: Whether the orders of the writers of a group decide snapshot isolation (lists).
        memory_limit: Bytes of a slice.
        more: The anomalies that are searched on demand.
    """

    width: int
    extra: str
    unordered: bool
    memory_limit: int
    more: tuple[str, ...] = ()


def sliced(numbers: Numbers, places: Places, width: int) -> Iterator[pa.RecordBatch]:
    """Yields rows of slices (`SLICED`) for pieces; the readers and writers of a fan are all among them."""
    of_fan = (numbers["what"] == READER) | (numbers["what"] == WRITER)
    yield from _sliced(only(numbers, ~of_fan), places, width)
    if of_fan.any():
        yield from _sliced_fans(only(numbers, of_fan), places, width)


def _sliced(numbers: Numbers, places: Places, width: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows for edges, lone vertices and groups."""
    positions, placed = places.of(numbers["a"], numbers["a_end"], numbers["a_kind"])
    is_edge = numbers["what"] == EDGE
    other, both = places.of(numbers["b"], numbers["b_end"], numbers["b_kind"])
    lone = np.flatnonzero(placed & is_edge & ~both)  # no cycle has the target, but one may have the origin
    yield _rows(_vertices(only(numbers, lone), "a"), positions[lone] // width, WITHIN)
    kept = np.flatnonzero(placed & (both | ~is_edge))
    numbers = only(numbers, kept)
    a, b = positions[kept] // width, np.where(is_edge[kept], other[kept], positions[kept]) // width
    yield _rows(only(numbers, a == b), a[a == b], WITHIN)
    for end, slices in (("a", a), ("b", b)):  # a vertex may have no edge within its slice
        yield _rows(_vertices(only(numbers, a != b), end), slices[a != b], WITHIN)
    yield _rows(only(numbers, b == a + 1), b[b == a + 1], FORTH)
    yield _rows(only(numbers, a == b + 1), a[a == b + 1], BACK)
    back = np.flatnonzero(a > b)
    if len(back):
        edges = only(numbers, back)
        yield _rows(_vertices(edges, "a"), a[back], EXIT)
        yield _rows(_vertices(edges, "b"), b[back], ENTRY)
        far = np.flatnonzero(a > b + 1)
        yield _rows(only(numbers, far), b[far], OVER)


def _sliced_fans(numbers: Numbers, places: Places, width: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows for the readers and writers of whole fans."""
    positions, placed = places.of(numbers["a"], numbers["a_end"], numbers["a_kind"])
    kept = np.flatnonzero(placed)
    numbers, slices = only(numbers, kept), positions[kept] // width
    yield _rows(numbers, slices, WITHIN)
    order = np.lexsort((numbers["key_place"], numbers["key_at"]))
    numbers, slices = only(numbers, order), slices[order]
    fan = _ranks(numbers)
    count = int(fan[-1]) + 1 if len(fan) else 0
    lowest, highest = np.full(count, 2**62), np.full(count, -1)
    writes = numbers["what"] == WRITER
    np.minimum.at(lowest, fan[writes], slices[writes])
    np.maximum.at(highest, fan[~writes], slices[~writes])
    out = ~writes & (slices > lowest[fan])
    yield _rows(_vertices(only(numbers, out), "a"), slices[out], EXIT)
    into = writes & (slices < highest[fan])
    yield _rows(_vertices(only(numbers, into), "a"), slices[into], ENTRY)
    far = out & (slices > lowest[fan] + 1)
    over = only(numbers, far)
    over["b"] = lowest[fan[far]] * width  # a place in the slice of the first writer
    yield _rows({**over, "what": np.full(len(over["a"]), READER, np.int8)}, lowest[fan[far]], OVER)


def _ranks(numbers: Numbers) -> Any:
    """Returns the rank of the key of each row; rows are in the order of keys."""
    new = (np.diff(numbers["key_at"]) != 0) | (np.diff(numbers["key_place"]) != 0)
    return np.concatenate([[0], np.cumsum(new)])[: len(numbers["key_at"])]


def _vertices(numbers: Numbers, end: str) -> Numbers:
    """Returns one end of edges, as vertices."""
    vertices = {name: np.zeros_like(column) for name, column in numbers.items()}
    vertices |= {f"a{name}": numbers[f"{end}{name}"] for name in SIDE}
    vertices["what"] = np.full_like(numbers["what"], VERTEX)
    return vertices


def _rows(numbers: Numbers, slices: Any, role: int) -> pa.RecordBatch:
    count = len(slices)
    known = {**numbers, "slice": slices, "role": np.full(count, role, np.int8)}
    arrays = [
        pa.array(known[field.name]).cast(field.type) if field.name in known else pa.nulls(count, field.type)
        for field in SLICED
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SLICED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a slice or a window shows.

    Attributes:
        told: Cycles and the like.
        rows: Pieces for the windows around its boundaries (`SLICED`).
    """

    told: list[dict[str, Any]] = field(default_factory=list)
    rows: list[pa.RecordBatch] = field(default_factory=list)


def decided(number: int, batches: Iterator[pa.RecordBatch], slicing: Slicing, *, windows: bool) -> Shown:
    """Decides a slice, or the window around the end of one, from its rows (`SLICED`)."""
    kept: list[Numbers] = []
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        kept.append(numbers_of(batch))
        if rows * BYTES_PER_PIECE > slicing.memory_limit:
            kept.clear()
    if rows * BYTES_PER_PIECE > slicing.memory_limit:
        return Shown(told=[{"large": rows}])
    numbers = joined(kept)
    kept.clear()
    return _window(numbers, slicing) if windows else _slice(number, numbers, slicing)


def _window(numbers: Numbers, slicing: Slicing) -> Shown:
    """Decides the vertices that lead over the end of one slice, and those of the next one."""
    inner = only(numbers, numbers["role"] == WITHIN)
    starts = np.unique(inner["a"])
    across = only(numbers, numbers["role"] != WITHIN)
    across = only(across, np.isin(across["a"], starts) & np.isin(across["b"], starts))
    return Shown(told=Part(joined([inner, across]), slicing).cycles())


def _slice(number: int, numbers: Numbers, slicing: Slicing) -> Shown:
    role = numbers["role"]
    inner = only(numbers, role == WITHIN)
    marked = only(numbers, (role == ENTRY) | (role == EXIT))
    far = only(numbers, role == OVER)
    over = [{"over": len(far["a"])}, *_against_time(far, slicing)] if len(far["a"]) else []
    if not len(marked["a"]):
        return Shown(told=over + Part(inner, slicing).cycles())
    part = Part(joined([inner, marked]), slicing)
    entries, exits = (np.unique(part.row(only(marked, marked["role"] == role)["a"])) for role in (ENTRY, EXIT))
    from_entry, to_exit = (
        np.frombuffer(flags, np.uint8) > 0 for flags in part.graph.reach(entries.tolist(), exits.tolist())
    )
    if (from_entry & to_exit).any():
        wide = {"wide": int((from_entry & to_exit).sum()), "slice": number}
        return Shown(told=[*over, *_against_time(only(numbers, role == BACK), slicing), wide, *part.cycles()])
    inner = {name: column for name, column in joined([inner, marked]).items() if name in NUMBERS.names}
    a = part.row(inner["a"])
    b = np.where(inner["what"] == EDGE, part.row(inner["b"]), a)
    rest = ~(from_entry | to_exit)
    alone = Part(joined([only(inner, rest[a] & rest[b]), part.vertices(np.flatnonzero(rest))]), slicing).cycles()
    rows = []
    for flags, window in ((to_exit, number), (from_entry, number + 1)):
        some = only(inner, flags[a] & flags[b])
        rows.append(_rows({name: some[name] for name in NUMBERS.names}, np.full(len(some["a"]), window), WITHIN))
        them = part.vertices(np.flatnonzero(flags))
        rows.append(_rows(them, np.full(len(them["a"]), window), WITHIN))
    for way, end in ((BACK, "a"), (FORTH, "b")):
        some = only(numbers, role == way)
        at, known = part.find(some[end])
        leads = known & to_exit[at]
        some = only(some, leads)
        rows.append(_rows({name: some[name] for name in NUMBERS.names}, np.full(len(some["a"]), number), way))
    return Shown(told=over + alone, rows=rows)


def _against_time(numbers: Numbers, slicing: Slicing) -> list[dict[str, Any]]:
    """Returns a cycle of each type that an edge makes with real time: it leads to a transaction that had completed before."""
    if slicing.extra != REALTIME:
        return []
    known = (numbers["what"] == EDGE) & (numbers["b_kind"] == OK) & (numbers["b_end"] < numbers["a"])
    told: list[dict[str, Any]] = []
    for kind, (name, word) in _AGAINST_TIME.items():
        rows = np.flatnonzero(known & (numbers["kind"] == kind))
        if len(rows):
            row = rows[np.argmin(numbers["a"][rows])]
            ref = [int(numbers[column][row]) for column in REF]
            a, b = int(numbers["a"][row]), int(numbers["b"][row])
            told += [
                {"cycle": [name, 2, b, [[a, b, word, ref, ref], [b, a, REALTIME, None, None]]]},
                {"counts": {name: 1}},
            ]
    return told


class Part:
    """A part of the graph.

    Attributes:
        graph: The kernel's.
    """

    def __init__(self, numbers: Numbers, slicing: Slicing) -> None:
        """Takes pieces; the ends of all edges are vertices of the part."""
        what = numbers["what"]
        edges = only(numbers, what == EDGE)
        fans = only(numbers, (what == READER) | (what == WRITER))
        groups = only(numbers, what == GROUP)
        reads, writes = only(numbers, what == READ), only(numbers, what == WRITE)
        ends = [(numbers, "a"), (edges, "b")]
        starts = np.concatenate([some[end] for some, end in ends])
        self._starts, first = np.unique(starts, return_index=True)
        sides = {name: np.concatenate([some[f"{end}{name}"] for some, end in ends])[first] for name in SIDE[1:]}
        del starts
        self._sides = sides
        edges = only(edges, np.lexsort((edges["after"], edges["before"], edges["key_place"], edges["key_at"])))
        fans = only(fans, np.lexsort((fans["key_place"], fans["key_at"])))
        groups = only(groups, np.lexsort((groups["key_place"], groups["key_at"])))
        reads, writes = (only(some, np.lexsort((some["at"], some["a"]))) for some in (reads, writes))
        edge_rank, fan_rank, read_rank, write_rank = _common_ranks(edges, fans, reads, writes)
        self._pieces = (edges, fans, reads, writes)
        self._groups = groups
        of_group = _ranks(groups)
        self._group_first = np.unique(of_group, return_index=True)[1]
        self.graph = TransactionGraph(
            kind=sides["_kind"].astype(np.int8),
            process=sides["_process"].astype(np.int64),
            start=self._starts.astype(np.int64),
            end=sides["_end"].astype(np.int64),
            edges=_u32s(self.row(edges["a"]), self.row(edges["b"]), edges["kind"], edge_rank, edges["at"]),
            fans=_u32s(fan_rank, self.row(fans["a"]), fans["what"] == WRITER, fans["at"]),
            groups=_u32s(of_group, self.row(groups["a"])),
            reads=_u32s(read_rank, self.row(reads["a"]), reads["at"], reads["position"], reads["before"]),
            writes=_u32s(write_rank, self.row(writes["a"]), writes["at"], writes["position"], writes["after"]),
            unordered=slicing.unordered,
            extra=slicing.extra,
            more=list(slicing.more),
        )

    def row(self, starts: Any) -> Any:
        """Returns the rows of transactions of the part."""
        return np.searchsorted(self._starts, starts)

    def find(self, starts: Any) -> tuple[Any, Any]:
        """Returns the rows of transactions, and which of them are in the part."""
        if not len(self._starts):
            return np.zeros(len(starts), np.int64), np.zeros(len(starts), bool)
        at = np.minimum(self.row(starts), len(self._starts) - 1)
        return at, self._starts[at] == starts

    def vertices(self, rows: Any) -> Numbers:
        """Returns some transactions as pieces."""
        count = len(rows)
        vertices = {name: np.zeros(count, np.int64) for name in NUMBERS.names}
        vertices |= {"a": self._starts[rows], **{f"a{name}": self._sides[name][rows] for name in SIDE[1:]}}
        vertices["what"] = np.full(count, VERTEX, np.int8)
        return vertices

    def cycles(self) -> list[dict[str, Any]]:
        """Returns what the kernel finds, with starts in place of rows."""
        if not len(self._starts):
            return []
        shown: list[dict[str, Any]] = []
        cycles = self.graph.cycles()
        start = self._starts.item
        for cycle in cycles.cycles:
            told = [
                [start(link.first), start(link.second), link.kind, self._ref(link.before), self._ref(link.after)]
                for link in cycle.links
            ]
            shown.append({"cycle": [cycle.kind, cycle.component, start(cycle.start), told]})
        for overlap in cycles.overlaps:
            told = [[start(row), self._key_of(group)] for row, group in overlap.writers]
            shown.append({"overlap": [overlap.kind, overlap.component, start(overlap.start), overlap.decided, told]})
        if cycles.counts:
            shown.append({"counts": cycles.counts})
        return shown

    def _ref(self, index: int | None) -> list[int] | None:
        """Returns the numbers that name a piece (`REF`)."""
        if index is None:
            return None
        for some in self._pieces:
            if index < len(some["a"]):
                return [int(some[name][index]) for name in REF]
            index -= len(some["a"])
        raise ValueError("expected the place of a piece")

    def _key_of(self, group: int) -> list[int]:
        at = self._group_first[group]
        return [int(self._groups[name][at]) for name in REF]


def _common_ranks(*pieces: Numbers) -> Sequence[Any]:
    """Returns the ranks of the keys of several tables of pieces, in the order of keys."""
    keys = {name: np.concatenate([some[name] for some in pieces]) for name in ("key_at", "key_place")}
    order = np.lexsort((keys["key_place"], keys["key_at"]))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = _ranks(only(keys, order))
    return np.split(ranks, np.cumsum([len(some["a"]) for some in pieces])[:-1])


def _u32s(*columns: Any) -> Sequence[Any]:
    """Returns columns of numbers as the kernel takes them; -1 becomes the number for none."""
    return [np.ascontiguousarray(column.astype(np.int64) & NONE, np.uint32) for column in columns]
