"""Finds the return at which a register stops being linearizable, and the few operations that explain it.

Linearizability is closed under prefixes. So a history that is not linearizable has a first return after which no linearization
is left. `labrys check` names the operation of that return, and so does this module.

Each contradiction exists from a certain return on: two zones that meet, or a contradiction within a chain. Its own operations
determine that return. So the search runs in rounds, over all keys at once:

1. Take a few contradictions, and for each the return from which on it exists.
2. Cut the history just before the first of these returns.
3. Repeat while the cut history contains a contradiction.

After `_GUESSES` rounds, each round cuts in the middle of the range that is left. So the number of rounds is logarithmic in the
length. The search needs only the operations that `results.pipeline.large_keys.components` selects.

A compare-and-set that returns after the cut is open in the cut history. It counts only if its value was observed by then.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import CAS, READ
from results.pipeline.decide.coding import ADDRESS, INF, NEG
from results.pipeline.large_keys.clusters import AFTER, until, value_of
from results.pipeline.large_keys.columns import schema_of
from results.pipeline.large_keys.components import contradicting
from results.pipeline.large_keys.contraction import CIRCLE, LOST, ORDER, PHANTOM
from results.pipeline.large_keys.paths import Path, paths
from results.pipeline.large_keys.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from results.pipeline.large_keys.scan import Scanned, Scanning

    Named = tuple[int, int]

_GUESSES: Final = 4
_ROWS_PER_TASK: Final = 1 << 17
_SHUFFLES: Final = "spark.sql.shuffle.partitions"
# The kernel's names of the kinds.
_STALE: Final = "stale"
_PHANTOM: Final = "phantom"
_KINDS: Final = {PHANTOM: _PHANTOM, LOST: "lost-update", CIRCLE: "cycle", ORDER: "order"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Where a key stops being linearizable.

    Attributes:
        start: The invoke of the operation at whose return no linearization is left.
        end: The return of this operation.
        part: The invokes of the operations that contradict each other, and of the operations that these depend on.
        kind: The kind of the violation if these are too many to examine; `part` then holds only the contradicting ones.
        observed: The values that operations of `part` observed, and perhaps other values that they wrote.
    """

    start: int
    end: int
    part: tuple[int, ...]
    kind: str | None
    observed: tuple[int, ...]


def blame(touches: DataFrame, scan: Scan, found: Sequence[Scanned], scanning: Scanning) -> Mapping[int, Blame]:
    """Finds where keys stop being linearizable.

    A key is left out if an operation of its explanation shares the index of its invoke or its return with another operation:
    then the indexes do not identify the operations.

    Args:
        touches: The coded operations of keys that are not linearizable, all with unique values.
        scan: The scan that found them, of these and perhaps of other keys.
        found: The results of the scan for these keys.
        scanning: The settings of the scan.

    Returns:
        A `Blame` for each key. Keys are left out if some prefix of their history needs too much memory.
    """
    # A checkpoint drops the query plan, which Spark would analyze again in all that follows.
    few = contradicting(touches, scan, found, scanning).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    own = _session_for(few)
    history = _History(own, scanning)
    ends = history.first(history.ends({each.address: INF - 1 for each in found}, found))
    # A chain that contradicts itself may have met another chain before that.
    doubted = {
        each.address: ends[each.address] - 1
        for each in found
        if each.address in ends and (each.contradictions or each.early)
    }
    whole = _History(touches, scanning)
    earlier = whole.first(whole.ends(doubted)) if doubted else {}
    first = {address: end for address, end in ends.items() if address not in earlier and address not in whole.unsolved}
    return {**history.parts(first, touches), **whole.parts(earlier, touches)}


def _session_for(rows: DataFrame) -> DataFrame:
    """Returns the same rows in a new session, with shuffle partitions for their number.

    A task costs more than some thousand rows do. A changed setting of the shared session would change plans of other threads.
    """
    spark, name = rows.sparkSession, f"labrys_{uuid.uuid4().hex}"
    own = spark.newSession()
    own.conf.set(_SHUFFLES, str(min(int(str(spark.conf.get(_SHUFFLES))), 1 + rows.count() // _ROWS_PER_TASK)))
    rows.createGlobalTempView(name)
    try:
        return own.table(f"global_temp.{name}")
    finally:
        spark.catalog.dropGlobalTempView(name)


class _History:
    """The operations of some keys, and searches in prefixes of their histories."""

    def __init__(self, touches: DataFrame, scanning: Scanning) -> None:
        self._touches = touches
        self._scanning = scanning
        self._spark = touches.sparkSession
        self.unsolved: set[int] = set()

    def first(self, ends: Mapping[int, int]) -> dict[int, int]:
        """Returns the first return at which each key is not linearizable, given returns at which they are not."""
        ends = dict(ends)
        valid = dict.fromkeys(ends, -1)
        rounds = 0
        while undecided := [address for address in ends if valid[address] < ends[address] - 1]:
            probes = {
                address: ends[address] - 1 if rounds < _GUESSES else (valid[address] + ends[address]) // 2
                for address in undecided
            }
            earlier = self.ends(probes)
            valid |= {address: probe for address, probe in probes.items() if address not in earlier}
            ends |= earlier
            rounds += 1
        return {address: end for address, end in ends.items() if address not in self.unsolved}

    def ends(self, probes: Mapping[int, int], found: Sequence[Scanned] | None = None) -> dict[int, int]:
        """Returns, for each key whose prefix is not linearizable, an index at which it is not."""
        rows = until(self._touches, probes)
        scan = Scan(rows, self._scanning)
        if found is None:
            found = scan.found()
            self.unsolved |= {each.address for each in found if each.unsuited}
        bad = [each for each in found if each.bad]
        # Without further knowledge of a key, its end is the end of the prefix.
        ends = {each.address: INF if each.late is None else each.late for each in bad}
        sides: list[tuple[int, int, int, int, int]] = []
        for each in bad:
            for row in each.contradictions:
                if row["outcome"] == ORDER:
                    end = row["min_end"]
                    sides.append((len(sides), each.address, row["max_start_value"], end, end))
                else:
                    ends[each.address] = min(ends[each.address], row["min_end"])
        limits = [(each.address, limit) for each in bad for limit in each.limits]
        if limits:
            scan.keep()
            pairs = self._pairs(scan.zoned, limits)
            if self._scanning.chained:
                self._since_blocks(rows, pairs, ends)
            else:
                sides += [
                    side
                    for number, pair in enumerate(pairs)
                    for side in (
                        (number, pair[ADDRESS], pair["our_value"], pair["min_end"], _both_ended(pair)),
                        (number, pair[ADDRESS], pair["value"], pair["our_min_end"], _both_ended(pair)),
                    )
                ]
        if sides:
            for address, end in self._since(rows, sides):
                ends[address] = min(end, ends[address])
        scan.release()
        return {address: min(end, probes[address]) for address, end in ends.items()}

    def _pairs(self, zoned: DataFrame, limits: Sequence[tuple[int, int]]) -> list[Any]:
        """Returns the zones with these limits, each with the earlier forward zone that reaches furthest."""
        named = self._spark.createDataFrame(limits, schema_of(ADDRESS, "limit"))
        placed = zoned.where("placed")
        columns = ("value", "min_end", "low", "forward")
        met = placed.join(F.broadcast(named), [ADDRESS, "limit"]).select(ADDRESS, *columns).collect()
        known = schema_of(ADDRESS, *(f"our_{name}" for name in columns))
        ours = self._spark.createDataFrame([tuple(row) for row in met], known)
        is_before = (F.col("low") < F.col("our_low")) | (
            (F.col("low") == F.col("our_low")) & F.col("our_forward") & (F.col("value") != F.col("our_value"))
        )
        return (
            placed.where("forward")
            .join(F.broadcast(ours), ADDRESS)
            .where(is_before)
            .groupBy(ADDRESS, "our_value", "our_min_end")
            .agg(F.max_by(F.struct("value", "min_end"), F.col("high")).alias("other"))
            .select(ADDRESS, "our_value", "our_min_end", "other.value", "other.min_end")
            .collect()
        )

    def _since_blocks(self, rows: DataFrame, pairs: Sequence[Any], ends: dict[int, int]) -> None:
        """Finds the first return at which a pair of chains meets, for one pair of each key, and lowers the key's end to it."""
        asked: dict[int, Any] = {}
        for pair in sorted(pairs, key=_both_ended):
            if _both_ended(pair) < ends[pair[ADDRESS]]:
                asked.setdefault(pair[ADDRESS], pair)
        if not asked:
            return
        afters = [(address, pair["min_end"], pair["our_min_end"]) for address, pair in asked.items()]
        bounds = self._spark.createDataFrame(afters, schema_of(ADDRESS, *AFTER))
        scan = Scan(rows.join(F.broadcast(bounds), ADDRESS), self._scanning)
        sides = ("our_value", "value")
        named = [(address, pair[side], mark) for address, pair in asked.items() for mark, side in enumerate(sides)]
        known = self._spark.createDataFrame(named, schema_of(ADDRESS, "value", "mark"))
        # An operation that observes a chain also observes the chain's first write.
        since = [
            F.when((F.col("writers") > 0) & (F.col("write_start") > F.col(after)), NEG).otherwise(
                F.col(f"since_{mark}")
            )
            for mark, after in enumerate(AFTER)
        ]
        found = (
            scan.zoned.where("placed")
            .join(F.broadcast(known), [ADDRESS, "value"])
            .groupBy(ADDRESS)
            .agg(F.max(F.when(F.col("mark") == 0, since[0]).otherwise(since[1])).alias("shown"))
            .collect()
        )
        scan.release()
        for row in found:
            address, pair = row[ADDRESS], asked[row[ADDRESS]]
            ends[address] = min(ends[address], max(_both_ended(pair), row["shown"]))

    def _since(self, rows: DataFrame, sides: Sequence[tuple[int, int, int, int, int]]) -> list[Any]:
        """Returns, by key, the first return at which one of some pairs contradicts.

        Args:
            rows: Operations.
            sides: Tuples of the number of the pair, the key, a value, the index after which an operation of the value begins,
                and a lower bound of the return.
        """
        known = self._spark.createDataFrame(
            list(sides), schema_of("pair", ADDRESS, "value", "began_after", "shown_from")
        )
        seen = F.when(F.col("opcode") == READ, F.col("end")).otherwise(F.lit(NEG))
        return (
            _valued(rows)
            .join(F.broadcast(known), [ADDRESS, "value"])
            .where(F.col("start") > F.col("began_after"))
            .groupBy(ADDRESS, "pair", "value", "shown_from")
            .agg(F.min(seen).alias("since"))
            .groupBy(ADDRESS, "pair")
            .agg(F.greatest(F.max("since"), F.max("shown_from")).alias("shown"))
            .groupBy(ADDRESS)
            .agg(F.min("shown"))
            .collect()
        )

    def parts(self, ends: Mapping[int, int], touches: DataFrame) -> dict[int, Blame]:
        """Returns the operation that ends at each end, with the operations that it contradicts.

        Args:
            ends: The first return at which each key is not linearizable.
            touches: All operations of these keys; the indexes of an explanation must be unique among them.
        """
        if not ends:
            return {}
        rows = until(self._touches, ends).persist(StorageLevel.DISK_ONLY)
        bounds = self._spark.createDataFrame(list(ends.items()), schema_of(ADDRESS, "end"))
        ops = {row[ADDRESS]: row for row in _valued(rows).join(F.broadcast(bounds), [ADDRESS, "end"]).collect()}
        scan = Scan(rows, self._scanning)
        scan.keep()
        named, kinds = self._contradicting(scan, ops)
        resting = self._paths(scan, {address: [value for value, _ in each] for address, each in named.items()})
        members = self._members(rows, named, resting)
        parts = {address: {row["start"], *members.get(address, ())} for address, row in ops.items()}
        tied = _tied(touches, self._at(rows, parts))
        scan.release()
        rows.unpersist()
        return {
            address: Blame(
                start=row["start"],
                end=ends[address],
                part=tuple(sorted(parts[address])),
                kind=None if address in resting else kinds[address],
                observed=tuple(sorted(_values(named[address], resting.get(address)))),
            )
            for address, row in ops.items()
            if address not in tied
        }

    def _at(self, rows: DataFrame, parts: Mapping[int, set[int]]) -> list[Any]:
        """Returns the intervals of the operations with these invokes."""
        known = self._spark.createDataFrame(
            [(address, start) for address, part in parts.items() for start in part], schema_of(ADDRESS, "start")
        )
        return rows.join(F.broadcast(known), [ADDRESS, "start"]).select(ADDRESS, "start", "end").collect()

    def _paths(self, scan: Scan, values: Mapping[int, Sequence[int]]) -> Mapping[int, Path]:
        if self._scanning.chained:
            return paths(scan.values, values, self._scanning.memory_limit)
        return {address: Path(values=frozenset(some), root=some[0]) for address, some in values.items()}

    def _contradicting(self, scan: Scan, ops: Mapping[int, Any]) -> tuple[dict[int, list[Named]], dict[int, str]]:
        """Returns by key the values that contradict each other, those that the kernel would find first, and the kind.

        Each value has an index: an operation that observed the value before this index is wanted too. `NEG` asks for none.
        """
        named = {address: [(op["value"], NEG)] for address, op in ops.items()}
        for address, op in ops.items():
            if op["opcode"] == CAS:
                named[address].append((op["first_argument"], NEG))
        kinds = dict.fromkeys(ops, _PHANTOM)
        meet = dict.fromkeys(ops, _STALE)
        for each in scan.found() if self._scanning.chained else ():
            if each.late is not None:
                del meet[each.address]
            elif each.contradictions:
                first = min(each.contradictions, key=lambda row: row["outcome"])
                named[each.address].append((first["max_start_value"], NEG))
                named[each.address].append((first["min_end_value"], first["max_start"]))
                kinds[each.address] = _KINDS[first["outcome"]]
                del meet[each.address]
        chains = self._paths(scan, {address: [ops[address]["value"]] for address in meet}) if meet else {}
        kinds |= meet
        for address, value in self._partners(scan.zoned, [(address, path.root) for address, path in chains.items()]):
            named[address].append((value, NEG))
        return named, kinds

    def _members(
        self, rows: DataFrame, named: Mapping[int, Sequence[Named]], resting: Mapping[int, Path]
    ) -> dict[int, set[int]]:
        """Returns the invokes of the first to end and the last to start of some values, and of the writers they depend on."""
        asked = {(address, value): (False, NEG) for address, path in resting.items() for value in path.values}
        for address, each in named.items():
            for value, before in each:
                asked[address, value] = (True, max(before, asked.get((address, value), (True, NEG))[1]))
        known = self._spark.createDataFrame(
            [(address, value, in_full, before) for (address, value), (in_full, before) in asked.items()],
            schema_of(ADDRESS, "value", "in_full", "seen_before"),
        )
        reads = F.col("opcode") == READ
        of_value = (
            _valued(rows)
            .join(F.broadcast(known), [ADDRESS, "value"])
            .groupBy(ADDRESS, "value", "in_full")
            .agg(
                F.min_by("start", "end").alias("first_to_end"),
                F.max("start").alias("last_to_start"),
                F.min(F.when(~reads, F.col("start"))).alias("writer"),
                F.min(F.when(reads & (F.col("end") < F.col("seen_before")), F.col("start"))).alias("reader"),
            )
            .collect()
        )
        members: dict[int, set[int]] = {}
        for row in of_value:
            names = ("first_to_end", "last_to_start", "writer", "reader") if row["in_full"] else ("writer",)
            members.setdefault(row[ADDRESS], set()).update(row[name] for name in names if row[name] is not None)
        return members

    def _partners(self, zoned: DataFrame, values: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the values that end first and start last in some zones, and in the zones that the kernel finds to meet them.

        Args:
            zoned: The zones.
            values: Keys, each with the value of a zone.
        """
        if not values:
            return []
        named = self._spark.createDataFrame(list(values), schema_of(ADDRESS, "value"))
        placed = zoned.where("placed")
        edges, ends = ("low", "high", "limit", "forward"), ("min_end_value", "max_start_value")
        ours = placed.join(F.broadcast(named), [ADDRESS, "value"]).select(ADDRESS, "value", *edges, *ends).collect()
        if not ours:
            return []
        bounds = schema_of(ADDRESS, "our_value", *(f"our_{name}" for name in edges))
        known = self._spark.createDataFrame([tuple(row)[: len(bounds)] for row in ours], bounds)
        is_before = (F.col("low") < F.col("our_low")) | (
            (F.col("low") == F.col("our_low")) & (F.col("forward") < F.col("our_forward"))
        )
        reach = F.when(is_before & F.col("forward"), F.col("high"))
        meets = ~is_before & F.col("our_forward") & (F.col("limit") < F.col("our_high"))
        after = F.when(meets, F.col("low"))
        theirs = F.struct(*ends)
        found = (
            placed.join(F.broadcast(known), ADDRESS)
            .where(F.col("value") != F.col("our_value"))
            .groupBy(ADDRESS, "our_limit")
            .agg(
                F.max(reach).alias("reach"),
                F.max_by(theirs, reach).alias("before"),
                F.min_by(theirs, after).alias("after"),
            )
            .collect()
        )
        partners = [(row[ADDRESS], row[name]) for row in ours for name in ends]
        for address, limit, reach_before, before, later in found:
            partner = before if reach_before is not None and reach_before > limit else later
            partners += [(address, value) for value in partner or ()]
        return partners


def _values(named: Sequence[Named], path: Path | None) -> set[int]:
    """Returns the values of contradicting operations, and those that lead to them."""
    return {value for value, _ in named} | (set() if path is None else set(path.values))


def _both_ended(pair: Any) -> int:
    """Returns the index at which both zones of a pair have an operation that has ended."""
    index: int = max(pair["min_end"], pair["our_min_end"])
    return index


def _tied(touches: DataFrame, intervals: Sequence[Any]) -> set[int]:
    """Returns the keys where another operation begins or ends at the same index as one of these intervals."""
    spark = touches.sparkSession
    begins = {(row[ADDRESS], row["start"], True) for row in intervals}
    ends = {(row[ADDRESS], row["end"], True) for row in intervals if row["end"] != INF}
    known = touches.select(ADDRESS, "start", "end")
    for name, indexes in (("start", begins), ("end", ends)):
        named = spark.createDataFrame(sorted(indexes), schema_of(ADDRESS, name, f"at_{name}"))
        known = known.join(F.broadcast(named), [ADDRESS, name], "left")
    there = known.where("at_start or at_end").collect()
    invokes = Counter((row[ADDRESS], row["start"]) for row in there if row["at_start"])
    returns = Counter((row[ADDRESS], row["end"]) for row in there if row["at_end"])
    return {address for found in (invokes, returns) for (address, _), count in found.items() if count > 1}


def _valued(rows: DataFrame) -> DataFrame:
    return rows.withColumn("value", value_of())
