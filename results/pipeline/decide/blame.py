"""Finds, in a register that is not linearizable, the return that shows it first and the few operations to tell of.

Linearizability is closed under prefixes, so there is one return by which no linearization is left any more, and it is that
which `labrys check` names. Two zones that meet do so from a certain return on, which their operations tell; what contradicts
within a chain does so as well. So: take a few such contradictions, and of the returns from which on they are there the first;
look at the history before that; and again, as long as it holds another contradiction. Each round looks at a shorter history,
all keys at once. After a few rounds the middle of what is left is tried, so that their number is bounded by the logarithm of
the length. For all this only the operations are needed that `results.pipeline.decide.components` takes.

In a history up to some return a compare-and-set that returned later is open: it counts only if its value was observed by then.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.contraction import CIRCLE, LOST, ORDER, PHANTOM
from checker.models.opcodes import CAS, READ
from results.pipeline.decide.clusters import AFTER, until, value_of
from results.pipeline.decide.coding import INF, NEG
from results.pipeline.decide.components import contradicting
from results.pipeline.decide.paths import Path, paths
from results.pipeline.decide.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from results.pipeline.decide.scan import Scanned, Scanning

    Named = tuple[int, int]

_GUESSES: Final = 4
_ROWS_PER_TASK: Final = 1 << 17
_SHUFFLES: Final = "spark.sql.shuffle.partitions"
# What the kernel calls it.
_STALE: Final = "stale"
_PHANTOM: Final = "phantom"
_KINDS: Final = {PHANTOM: _PHANTOM, LOST: "lost-update", CIRCLE: "cycle", ORDER: "order"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Where a key stops being linearizable.

    Attributes:
        start: The invoke of the operation by whose return no linearization is left.
        end: Its return.
        part: The invokes of the operations that contradict each other, and of those that they rest on.
        kind: What is wrong, where those are too many to be looked at; then `part` holds only the former.
    """

    start: int
    end: int
    part: tuple[int, ...]
    kind: str | None


def blame(touches: DataFrame, scan: Scan, found: Sequence[Scanned], scanning: Scanning) -> Mapping[int, Blame]:
    """Looks at keys that are not linearizable.

    A key is left out if one of those operations begins or ends at the index of another: then their indexes do not name them.

    Args:
        touches: Coded operations of these keys, all with unique values.
        scan: The scan that found it, of these and perhaps of other keys.
        found: What it says of them.
        scanning: How they were scanned.

    Returns:
        What is found by key; without those of which too much waited at once in some part of the history.
    """
    # Without the plan that it comes from, which everything that follows would have to look through.
    few = contradicting(touches, scan, found, scanning).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    own = _session_for(few)
    history = _History(own, scanning)
    ends = history.first(history.ends({each.h: INF - 1 for each in found}, found))
    # A chain that contradicts itself may have met another one before it did so.
    doubted = {each.h: ends[each.h] - 1 for each in found if each.h in ends and (each.told or each.early)}
    whole = _History(touches, scanning)
    earlier = whole.first(whole.ends(doubted)) if doubted else {}
    first = {h: end for h, end in ends.items() if h not in earlier and h not in whole.unsolved}
    return {**history.parts(first, touches), **whole.parts(earlier, touches)}


def _session_for(rows: DataFrame) -> DataFrame:
    """Returns the same rows in a session of their own, whose queries have as many tasks as so many rows need.

    Each task costs more than some thousand rows. A setting of the one session would change plans that others have begun.
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
    """The operations of some keys, of which prefixes are looked at."""

    def __init__(self, touches: DataFrame, scanning: Scanning) -> None:
        self._touches = touches
        self._scanning = scanning
        self._spark = touches.sparkSession
        self.unsolved: set[int] = set()

    def first(self, ends: Mapping[int, int]) -> dict[int, int]:
        """Returns, for keys that are not linearizable up to some ends, the first ones by which they are not."""
        ends = dict(ends)
        valid = dict.fromkeys(ends, -1)
        rounds = 0
        while undecided := [h for h in ends if valid[h] < ends[h] - 1]:
            probes = {h: ends[h] - 1 if rounds < _GUESSES else (valid[h] + ends[h]) // 2 for h in undecided}
            earlier = self.ends(probes)
            valid |= {h: probe for h, probe in probes.items() if h not in earlier}
            ends |= earlier
            rounds += 1
        return {h: end for h, end in ends.items() if h not in self.unsolved}

    def ends(self, probes: Mapping[int, int], found: Sequence[Scanned] | None = None) -> dict[int, int]:
        """Returns, for each key whose prefix is not linearizable, an index by which it is not."""
        rows = until(self._touches, probes)
        scan = Scan(rows, self._scanning)
        if found is None:
            found = scan.found()
            self.unsolved |= {each.h for each in found if each.unsuited}
        bad = [each for each in found if each.bad]
        # Those that nothing else is found out about end with what is looked at.
        ends = {each.h: INF if each.late is None else each.late for each in bad}
        sides: list[tuple[int, int, int, int, int]] = []
        for each in bad:
            for told in each.told:
                if told["kind"] == ORDER:
                    sides.append((len(sides), each.h, told["starts_v"], told["ends"], told["ends"]))
                else:
                    ends[each.h] = min(ends[each.h], told["ends"])
        limits = [(each.h, limit) for each in bad for limit in each.limits]
        if limits:
            scan.keep()
            pairs = self._pairs(scan.zoned, limits)
            if self._scanning.chained:
                self._since_blocks(rows, pairs, ends)
            else:
                sides += [
                    side
                    for i, pair in enumerate(pairs)
                    for side in (
                        (i, pair["h"], pair["our_v"], pair["m"], max(pair["m"], pair["our_m"])),
                        (i, pair["h"], pair["v"], pair["our_m"], max(pair["m"], pair["our_m"])),
                    )
                ]
        if sides:
            for h, end in self._since(rows, sides):
                ends[h] = min(end, ends[h])
        scan.release()
        return {h: min(end, probes[h]) for h, end in ends.items()}

    def _pairs(self, zoned: DataFrame, limits: Sequence[tuple[int, int]]) -> list[Any]:
        """Returns the zones with these limits, each with the forward zone before it that reaches furthest."""
        named = self._spark.createDataFrame(limits, "h bigint, limit bigint")
        placed = zoned.where("placed")
        met = placed.join(F.broadcast(named), ["h", "limit"]).select("h", "v", "m", "low", "forward").collect()
        types = "our_m bigint, our_low bigint, our_forward boolean"
        ours = self._spark.createDataFrame([tuple(row) for row in met], f"h bigint, our_v bigint, {types}")
        is_before = (F.col("low") < F.col("our_low")) | (
            (F.col("low") == F.col("our_low")) & F.col("our_forward") & (F.col("v") != F.col("our_v"))
        )
        return (
            placed.where("forward")
            .join(F.broadcast(ours), "h")
            .where(is_before)
            .groupBy("h", "our_v", "our_m")
            .agg(F.max_by(F.struct("v", "m"), F.col("high")).alias("other"))
            .select("h", "our_v", "our_m", "other.v", "other.m")
            .collect()
        )

    def _since_blocks(self, rows: DataFrame, pairs: Sequence[Any], ends: dict[int, int]) -> None:
        """Finds the first return by which a pair of chains meets, one pair of each key, and lowers the key's end to it."""
        asked: dict[int, Any] = {}
        for pair in sorted(pairs, key=lambda pair: max(pair["m"], pair["our_m"])):
            if max(pair["m"], pair["our_m"]) < ends[pair["h"]]:
                asked.setdefault(pair["h"], pair)
        if not asked:
            return
        afters = [(h, pair["m"], pair["our_m"]) for h, pair in asked.items()]
        bounds = self._spark.createDataFrame(afters, f"h bigint, {AFTER[0]} bigint, {AFTER[1]} bigint")
        scan = Scan(rows.join(F.broadcast(bounds), "h"), self._scanning)
        named = [(pair["h"], v, mark) for pair in asked.values() for mark, v in enumerate((pair["our_v"], pair["v"]))]
        known = self._spark.createDataFrame(named, "h bigint, v bigint, mark int")
        # Whoever sees a chain sees the write that it begins with.
        since = [
            F.when((F.col("writers") > 0) & (F.col("ws") > F.col(after)), NEG).otherwise(F.col(f"since_{mark}"))
            for mark, after in enumerate(AFTER)
        ]
        found = (
            scan.zoned.where("placed")
            .join(F.broadcast(known), ["h", "v"])
            .groupBy("h")
            .agg(F.max(F.when(F.col("mark") == 0, since[0]).otherwise(since[1])).alias("end"))
            .collect()
        )
        scan.release()
        for row in found:
            pair = asked[row["h"]]
            ends[row["h"]] = min(ends[row["h"]], max(pair["m"], pair["our_m"], row["end"]))

    def _since(self, rows: DataFrame, sides: Sequence[tuple[int, int, int, int, int]]) -> list[Any]:
        """Returns, by key, the first return by which one of some pairs contradicts.

        Args:
            rows: Operations.
            sides: The number of the pair, the key, a value of which something begins late, after when, and the least return.
        """
        known = self._spark.createDataFrame(list(sides), "pair bigint, h bigint, v bigint, after bigint, least bigint")
        seen = F.when(F.col("f") == READ, F.col("e")).otherwise(F.lit(NEG))
        return (
            _valued(rows)
            .join(F.broadcast(known), ["h", "v"])
            .where(F.col("s") > F.col("after"))
            .groupBy("h", "pair", "v", "least")
            .agg(F.min(seen).alias("since"))
            .groupBy("h", "pair")
            .agg(F.greatest(F.max("since"), F.max("least")).alias("end"))
            .groupBy("h")
            .agg(F.min("end"))
            .collect()
        )

    def parts(self, ends: Mapping[int, int], touches: DataFrame) -> dict[int, Blame]:
        """Returns the operation that ends at each end, and what it contradicts.

        Args:
            ends: The first returns by which keys are not linearizable.
            touches: All operations of these keys, among which indexes have to name those that are told of.
        """
        if not ends:
            return {}
        rows = until(self._touches, ends).persist(StorageLevel.DISK_ONLY)
        bounds = self._spark.createDataFrame(list(ends.items()), "h bigint, e bigint")
        ops = {row["h"]: row for row in _valued(rows).join(F.broadcast(bounds), ["h", "e"]).collect()}
        scan = Scan(rows, self._scanning)
        scan.keep()
        named, kinds = self._contradicting(scan, ops)
        resting = self._paths(scan, {h: [v for v, _ in each] for h, each in named.items()})
        members = self._members(rows, named, resting)
        parts = {h: {row["s"], *members.get(h, ())} for h, row in ops.items()}
        tied = _tied(touches, self._at(rows, parts))
        scan.release()
        rows.unpersist()
        return {
            h: Blame(
                start=row["s"],
                end=ends[h],
                part=tuple(sorted(parts[h])),
                kind=None if h in resting else kinds[h],
            )
            for h, row in ops.items()
            if h not in tied
        }

    def _at(self, rows: DataFrame, parts: Mapping[int, set[int]]) -> list[Any]:
        """Returns the intervals of operations, given by their invokes."""
        known = self._spark.createDataFrame([(h, s) for h, part in parts.items() for s in part], "h bigint, s bigint")
        return rows.join(F.broadcast(known), ["h", "s"]).select("h", "s", "e").collect()

    def _paths(self, scan: Scan, values: Mapping[int, Sequence[int]]) -> Mapping[int, Path]:
        if self._scanning.chained:
            return paths(scan.values, values, self._scanning.memory_limit)
        return {h: Path(values=frozenset(vs), root=vs[0]) for h, vs in values.items()}

    def _contradicting(self, scan: Scan, ops: Mapping[int, Any]) -> tuple[dict[int, list[Named]], dict[int, str]]:
        """Returns by key the values that contradict each other, those that the kernel comes upon first, and how they do.

        With each value goes before which index one who saw it ended, who is wanted besides; `NEG` for nobody.
        """
        named = {h: [(op["v"], NEG), *([(op["a"], NEG)] if op["f"] == CAS else [])] for h, op in ops.items()}
        kinds = dict.fromkeys(ops, _PHANTOM)
        meet = dict.fromkeys(ops, _STALE)
        for each in scan.found() if self._scanning.chained else ():
            if each.late is not None:
                del meet[each.h]
            elif each.told:
                first = min(each.told, key=lambda told: told["kind"])
                named[each.h] += [(first["starts_v"], NEG), (first["ends_v"], first["starts"])]
                kinds[each.h] = _KINDS[first["kind"]]
                del meet[each.h]
        chains = self._paths(scan, {h: [ops[h]["v"]] for h in meet}) if meet else {}
        kinds |= meet
        for h, v in self._partners(scan.zoned, [(h, path.root) for h, path in chains.items()]):
            named[h].append((v, NEG))
        return named, kinds

    def _members(
        self, rows: DataFrame, named: Mapping[int, Sequence[Named]], resting: Mapping[int, Path]
    ) -> dict[int, set[int]]:
        """Returns the invokes of those who end first and start last of some values, and of all who made what they rest on."""
        asked = {(h, v): (False, NEG) for h, path in resting.items() for v in path.values}
        for h, each in named.items():
            for v, before in each:
                asked[h, v] = (True, max(before, asked.get((h, v), (True, NEG))[1]))
        known = self._spark.createDataFrame(
            [(h, v, told, before) for (h, v), (told, before) in asked.items()],
            "h bigint, v bigint, told boolean, before bigint",
        )
        reads = F.col("f") == READ
        of_value = (
            _valued(rows)
            .join(F.broadcast(known), ["h", "v"])
            .groupBy("h", "v", "told")
            .agg(
                F.min_by("s", "e").alias("ends"),
                F.max("s").alias("starts"),
                F.min(F.when(~reads, F.col("s"))).alias("writes"),
                F.min(F.when(reads & (F.col("e") < F.col("before")), F.col("s"))).alias("sees"),
            )
            .collect()
        )
        members: dict[int, set[int]] = {}
        for row in of_value:
            names = ("ends", "starts", "writes", "sees") if row["told"] else ("writes",)
            members.setdefault(row["h"], set()).update(row[name] for name in names if row[name] is not None)
        return members

    def _partners(self, zoned: DataFrame, values: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the values of who ends first and starts last of some zones, and of those that the kernel finds to meet them.

        Args:
            zoned: The zones.
            values: Keys, and a zone of each.
        """
        if not values:
            return []
        named = self._spark.createDataFrame(list(values), "h bigint, v bigint")
        placed = zoned.where("placed")
        columns = ("low", "high", "limit", "forward", "ends_v", "starts_v")
        ours = placed.join(F.broadcast(named), ["h", "v"]).select("h", "v", *columns).collect()
        if not ours:
            return []
        types = "our_low bigint, our_high bigint, our_limit bigint, our_forward boolean"
        known = self._spark.createDataFrame([tuple(row)[:6] for row in ours], f"h bigint, our_v bigint, {types}")
        is_before = (F.col("low") < F.col("our_low")) | (
            (F.col("low") == F.col("our_low")) & (F.col("forward") < F.col("our_forward"))
        )
        reach = F.when(is_before & F.col("forward"), F.col("high"))
        meets = ~is_before & F.col("our_forward") & (F.col("limit") < F.col("our_high"))
        after = F.when(meets, F.col("low"))
        theirs = F.struct("ends_v", "starts_v")
        found = (
            placed.join(F.broadcast(known), "h")
            .where(F.col("v") != F.col("our_v"))
            .groupBy("h", "our_limit")
            .agg(
                F.max(reach).alias("reach"),
                F.max_by(theirs, reach).alias("before"),
                F.min_by(theirs, after).alias("after"),
            )
            .collect()
        )
        partners = [(row["h"], v) for row in ours for v in (row["ends_v"], row["starts_v"])]
        for h, limit, reach_before, before, later in found:
            partner = before if reach_before is not None and reach_before > limit else later
            partners += [(h, v) for v in partner or ()]
        return partners


def _tied(touches: DataFrame, intervals: Sequence[Any]) -> set[int]:
    """Returns the keys of which something begins or ends at an index at which one of these intervals does."""
    spark = touches.sparkSession
    begins = {(row["h"], row["s"], True) for row in intervals}
    ends = {(row["h"], row["e"], True) for row in intervals if row["e"] != INF}
    known = touches.select("h", "s", "e")
    for name, indexes in (("s", begins), ("e", ends)):
        named = spark.createDataFrame(sorted(indexes), f"h bigint, {name} bigint, at_{name} boolean")
        known = known.join(F.broadcast(named), ["h", name], "left")
    there = known.where("at_s or at_e").collect()
    invokes = Counter((row["h"], row["s"]) for row in there if row["at_s"])
    returns = Counter((row["h"], row["e"]) for row in there if row["at_e"])
    return {h for found in (invokes, returns) for (h, _), count in found.items() if count > 1}


def _valued(rows: DataFrame) -> DataFrame:
    return rows.withColumn("v", value_of(F.col("f"), F.col("a"), F.col("b")))
