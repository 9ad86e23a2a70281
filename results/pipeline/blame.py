"""Finds, in a register that is not linearizable, the return that shows it first and the few operations to tell of.

Linearizability is closed under prefixes, so there is one return by which no linearization is left any more, and it is that
which `labrys check` names. Two zones that meet do so from a certain return on, which their operations tell. So: take a few
pairs of zones that meet, and of the returns from which on they do the first; look at the history before that; and again, as
long as it holds another contradiction. Each round looks at a shorter history, all keys at once. After a few rounds the middle
of what is left is tried, so that their number is bounded by the logarithm of the length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import READ, WRITE
from results.pipeline.clusters import clusters, until
from results.pipeline.coding import INF, NEG
from results.pipeline.zones import scanned, zones

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

_GUESSES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Where a key stops being linearizable.

    Attributes:
        start: The invoke of the operation by whose return no linearization is left.
        end: Its return.
        part: The invokes of the operations that contradict each other, and of those that they rest on.
    """

    start: int
    end: int
    part: tuple[int, ...]


def blame(touches: DataFrame, found: Sequence[Any], initial: int, bucket_events: int) -> Mapping[int, Blame]:
    """Looks at keys that are not linearizable.

    Args:
        touches: Coded operations of these keys, reads and writes with unique values.
        found: What `scanned` says of them.
        initial: The number of the initial value.
        bucket_events: As `scanned` takes it.
    """
    history = _History(touches, initial, bucket_events)
    ends = history.ends({row["h"]: INF - 1 for row in found}, found)
    valid = dict.fromkeys(ends, -1)
    rounds = 0
    while undecided := [h for h in ends if valid[h] < ends[h] - 1]:
        probes = {h: ends[h] - 1 if rounds < _GUESSES else (valid[h] + ends[h]) // 2 for h in undecided}
        bad = [row for row in history.scan(probes) if row["late"] is not None or row["limits"]]
        earlier = history.ends({row["h"]: probes[row["h"]] for row in bad}, bad) if bad else {}
        valid |= {h: probe for h, probe in probes.items() if h not in earlier}
        ends |= earlier
        rounds += 1
    return history.parts(ends)


class _History:
    """The operations of some keys, of which prefixes are looked at."""

    def __init__(self, touches: DataFrame, initial: int, bucket_events: int) -> None:
        self._touches = touches
        self._initial = initial
        self._bucket_events = bucket_events
        self._spark = touches.sparkSession

    def _zones(self, rows: DataFrame) -> DataFrame:
        return zones(clusters(rows), self._initial)

    def scan(self, probes: Mapping[int, int]) -> list[Any]:
        """Decides prefixes."""
        return scanned(self._zones(until(self._touches, probes)), self._initial, self._bucket_events).collect()

    def ends(self, probes: Mapping[int, int], found: Iterable[Any]) -> dict[int, int]:
        """Returns a return for each key by which its prefix has a contradiction."""
        rows = until(self._touches, probes)
        ends = {row["h"]: row["late"] for row in found if row["late"] is not None}
        limits = [(row["h"], limit) for row in found for limit in row["limits"]]
        if limits:
            zoned = self._zones(rows).where("placed").persist(StorageLevel.DISK_ONLY)
            pairs = self._pairs(zoned, limits)
            zoned.unpersist()
            for h, end in self._since(rows, pairs):
                ends[h] = min(end, ends.get(h, INF))
        return ends

    def _pairs(self, zoned: DataFrame, limits: Sequence[tuple[int, int]]) -> list[Any]:
        """Returns the zones with these limits, each with the forward zone before it that reaches furthest."""
        named = self._spark.createDataFrame(limits, "h bigint, limit bigint")
        met = zoned.join(F.broadcast(named), ["h", "limit"]).select("h", "v", "m", "low").collect()
        ours = self._spark.createDataFrame(
            [tuple(row) for row in met], "h bigint, our_v bigint, our_m bigint, our_low bigint"
        )
        return (
            zoned.where("forward")
            .join(F.broadcast(ours), "h")
            .where(F.col("low") < F.col("our_low"))
            .groupBy("h", "our_v", "our_m")
            .agg(F.max_by(F.struct("v", "m"), F.col("high")).alias("other"))
            .select("h", "our_v", "our_m", "other.v", "other.m")
            .collect()
        )

    def _since(self, rows: DataFrame, pairs: Sequence[Any]) -> list[Any]:
        """Returns, by key, the first return by which one of the pairs meets."""
        sides = [
            side
            for i, (h, our_v, our_m, v, m) in enumerate(pairs)
            for side in ((i, h, our_v, m, max(m, our_m)), (i, h, v, our_m, max(m, our_m)))
        ]
        known = self._spark.createDataFrame(sides, "pair bigint, h bigint, a bigint, after bigint, least bigint")
        seen = F.when(F.col("f") == READ, F.col("e")).otherwise(F.lit(NEG))
        return (
            rows.join(F.broadcast(known), ["h", "a"])
            .where(F.col("s") > F.col("after"))
            .groupBy("h", "pair", "a", "least")
            .agg(F.min(seen).alias("since"))
            .groupBy("h", "pair")
            .agg(F.greatest(F.max("since"), F.max("least")).alias("end"))
            .groupBy("h")
            .agg(F.min("end"))
            .collect()
        )

    def parts(self, ends: Mapping[int, int]) -> dict[int, Blame]:
        """Returns the operation that ends at each end, and what it contradicts."""
        rows = until(self._touches, ends).persist(StorageLevel.DISK_ONLY)
        bounds = self._spark.createDataFrame(list(ends.items()), "h bigint, e bigint")
        ops = {row["h"]: row for row in rows.join(F.broadcast(bounds), ["h", "e"]).select("h", "a", "s").collect()}
        values = [(h, row["a"]) for h, row in ops.items()]
        values += self._partners(self._zones(rows), values)
        named = self._spark.createDataFrame(values, "h bigint, a bigint").distinct()
        of_value = (
            rows.join(F.broadcast(named), ["h", "a"])
            .groupBy("h", "a")
            .agg(
                F.min_by("s", "e").alias("ends"),
                F.max("s").alias("starts"),
                F.min(F.when(F.col("f") == WRITE, F.col("s"))).alias("writes"),
            )
            .collect()
        )
        rows.unpersist()
        members: dict[int, set[int]] = {h: {row["s"]} for h, row in ops.items()}
        for row in of_value:
            members[row["h"]] |= {row[name] for name in ("ends", "starts", "writes") if row[name] is not None}
        return {h: Blame(start=row["s"], end=ends[h], part=tuple(sorted(members[h]))) for h, row in ops.items()}

    def _partners(self, zoned: DataFrame, values: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the values whose zones meet these values' zones, those that the kernel's sweep comes upon first."""
        named = self._spark.createDataFrame(list(values), "h bigint, v bigint")
        placed = zoned.where("placed")
        ours = placed.join(F.broadcast(named), ["h", "v"]).select("h", "v", "low", "high", "limit", "forward").collect()
        if not ours:
            return []
        columns = "h bigint, our_v bigint, our_low bigint, our_high bigint, our_limit bigint, our_forward boolean"
        known = self._spark.createDataFrame([tuple(row) for row in ours], columns)
        is_before = (F.col("low") < F.col("our_low")) | (
            (F.col("low") == F.col("our_low")) & (F.col("forward") < F.col("our_forward"))
        )
        reach = F.when(is_before & F.col("forward"), F.col("high"))
        meets = ~is_before & F.col("our_forward") & (F.col("limit") < F.col("our_high"))
        after = F.when(meets, F.col("low"))
        found = (
            placed.join(F.broadcast(known), "h")
            .where(F.col("v") != F.col("our_v"))
            .groupBy("h", "our_limit")
            .agg(
                F.max(reach).alias("reach"),
                F.max_by(F.col("v"), reach).alias("before"),
                F.min_by(F.col("v"), after).alias("after"),
            )
            .collect()
        )
        partners = []
        for h, limit, reach_before, before, later in found:
            partner = before if reach_before is not None and reach_before > limit else later
            if partner is not None:
                partners.append((h, partner))
        return partners
