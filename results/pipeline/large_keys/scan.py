"""Decides registers of any size by dataflow, if their values are unique: first chains, then zones.

A key without compare-and-sets has no chains; each of its values has a zone of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.decide.coding import ADDRESS
from results.pipeline.large_keys.chains import joined_at_last, joined_in_slices, linked, pieces
from results.pipeline.large_keys.clusters import clusters
from results.pipeline.large_keys.contraction import BLOCK, CONTRADICTIONS, OPEN, UNSOLVED
from results.pipeline.large_keys.zones import blocks, scanned, slices, zones

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

# How many contradictions within chains are kept for each key.
CONTRADICTIONS_KEPT: Final = 4
_COLUMNS: Final = ("outcome", "min_end", "min_end_value", "max_start", "max_start_value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanning:
    """The settings of a scan.

    Attributes:
        initial: The number of the initial value.
        bucket_events: How many events make a slice of a timeline.
        memory_limit: Bytes for the waiting pieces of one key.
        chained: Whether there may be compare-and-sets.
    """

    initial: int
    bucket_events: int
    memory_limit: int
    chained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The result for a key.

    Attributes:
        address: The number of the run and key.
        chained: Whether there are compare-and-sets.
        general: Whether an operation has no coding in integers.
        unsuited: Whether the scan cannot decide: a value was written twice, a failed compare-and-set observes, or too many
            pieces wait.
        late: The first end of an operation that observed a value before its write began.
        early: Whether a value of a chain was observed before it was written.
        limits: The limits of a few zones that other zones meet.
        contradictions: A few contradictions within chains, as rows of `results.pipeline.large_keys.contraction`.
    """

    address: int
    chained: bool
    general: bool
    unsuited: bool
    late: int | None
    early: bool
    limits: Sequence[int]
    contradictions: Sequence[Any]

    @property
    def bad(self) -> bool:
        """Whether the key is not linearizable."""
        return self.late is not None or bool(self.limits) or bool(self.contradictions)


class Scan:
    """The values and the zones of some keys; holds files until `release`.

    Attributes:
        values: The rows of `results.pipeline.large_keys.clusters`.
        zoned: The rows of `results.pipeline.large_keys.zones`.
    """

    def __init__(self, touches: DataFrame, scanning: Scanning) -> None:
        """Prepares queries over coded operations; only a later call runs them."""
        self._scanning = scanning
        self._kept: list[DataFrame] = []
        self.values = clusters(touches, chained=scanning.chained)
        self.zoned = zones(self.values, scanning.initial)
        self._chains: DataFrame | None = None
        if scanning.chained:
            self.values = self._keep(self.values)
            singles = zones(self.values, scanning.initial)
            singles = singles.withColumn("placed", F.col("placed") & ~linked())
            self._chains = self._joined()
            self.zoned = singles.unionByName(blocks(self._chains), allowMissingColumns=True)

    def _joined(self) -> DataFrame:
        of_chains = pieces(self.values.where(linked()), self._scanning.initial)
        first = self._keep(joined_in_slices(of_chains, self._scanning.bucket_events))
        left = first.where(F.col("outcome") == OPEN)
        last = self._keep(joined_at_last(left, self._scanning.memory_limit))
        return first.where(F.col("outcome") != OPEN).unionByName(last)

    def _keep(self, rows: DataFrame) -> DataFrame:
        kept = rows.persist(StorageLevel.DISK_ONLY)
        self._kept.append(kept)
        return kept

    def keep(self) -> None:
        """Keeps the zones on disk, because several queries read them."""
        self.zoned = self._keep(self.zoned)

    @cached_property
    def slices(self) -> DataFrame:
        """The rows of `results.pipeline.large_keys.zones.slices`, computed once."""
        return slices(self.zoned, self._scanning.initial, self._scanning.bucket_events).localCheckpoint()

    def found(self) -> list[Scanned]:
        """Decides the keys."""
        rows = scanned(self.slices).collect()
        contradictions, unsolved = self._contradictions()
        return [
            Scanned(
                address=row[ADDRESS],
                chained=bool(row["cas"]),
                general=bool(row["general"]),
                unsuited=bool(row["doubled"] or row["failed"]) or row[ADDRESS] in unsolved,
                late=row["late"],
                early=row["early"],
                limits=row["limits"],
                contradictions=contradictions.get(row[ADDRESS], ()),
            )
            for row in rows
        ]

    def _contradictions(self) -> tuple[Mapping[int, Sequence[Any]], set[int]]:
        kept: dict[int, list[Any]] = {}
        if self._chains is None:
            return kept, set()
        rows = self._chains.where(F.col("outcome") != BLOCK).select(ADDRESS, *_COLUMNS).collect()
        for row in sorted(rows, key=lambda row: max(row["min_end"], row["max_start"])):
            if row["outcome"] in CONTRADICTIONS and len(kept.setdefault(row[ADDRESS], [])) < CONTRADICTIONS_KEPT:
                kept[row[ADDRESS]].append(row)
        return kept, {row[ADDRESS] for row in rows if row["outcome"] == UNSOLVED}

    def release(self) -> None:
        """Deletes the files."""
        for rows in reversed(self._kept):
            rows.unpersist()
        self._kept.clear()
