"""Decides registers of any size by dataflow, as far as their values are unique: chains first, then zones.

A key without compare-and-sets has no chains, and its values stand among each other as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.contraction import BLOCK, CONTRADICTIONS, OPEN, UNSOLVED
from results.pipeline.decide.chains import joined_at_last, joined_in_slices, linked, pieces
from results.pipeline.decide.clusters import clusters
from results.pipeline.decide.columns import ADDRESS
from results.pipeline.decide.zones import blocks, scanned, slices, zones

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

# Of how many contradictions within the chains of a key one is looked at.
TOLD: Final = 4
_COLUMNS: Final = ("outcome", "least_end", "least_end_value", "greatest_start", "greatest_start_value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanning:
    """How keys are looked at.

    Attributes:
        initial: The number of the initial value.
        bucket_events: How many events make a slice of a timeline.
        memory_limit: Bytes for what waits at once of one key.
        chained: Whether there may be compare-and-sets.
    """

    initial: int
    bucket_events: int
    memory_limit: int
    chained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a key is, or why that is not said here.

    Attributes:
        address: The number of the run and key.
        chained: Whether there are compare-and-sets.
        general: Whether an operation is not said in integers.
        unsuited: Whether values are not unique, a failed compare-and-set observes, or too much of the key waits at once.
        late: The first end of one that saw what was not written yet.
        early: Whether a value of a chain was seen before it was written.
        limits: The limits of a few zones that others meet.
        told: A few contradictions within chains, as `checker.contraction` says them.
    """

    address: int
    chained: bool
    general: bool
    unsuited: bool
    late: int | None
    early: bool
    limits: Sequence[int]
    told: Sequence[Any]

    @property
    def bad(self) -> bool:
        """Whether the key is not linearizable."""
        return self.late is not None or bool(self.limits) or bool(self.told)


class Scan:
    """The values of some keys, and what they say; holds files until it is released.

    Attributes:
        values: The rows of `results.pipeline.decide.clusters`.
        zoned: Those of `results.pipeline.decide.zones`.
    """

    def __init__(self, touches: DataFrame, scanning: Scanning) -> None:
        """Takes coded operations. Nothing runs yet."""
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
        """Keeps the zones, because they are to be looked at several times."""
        self.zoned = self._keep(self.zoned)

    @cached_property
    def slices(self) -> DataFrame:
        """What is known of each slice of the timelines; found out once."""
        return slices(self.zoned, self._scanning.initial, self._scanning.bucket_events).localCheckpoint()

    def found(self) -> list[Scanned]:
        """Decides the keys."""
        rows = scanned(self.slices).collect()
        told, unsolved = self._contradictions()
        return [
            Scanned(
                address=row[ADDRESS],
                chained=bool(row["cas"]),
                general=bool(row["general"]),
                unsuited=bool(row["doubled"] or row["failed"]) or row[ADDRESS] in unsolved,
                late=row["late"],
                early=row["early"],
                limits=row["limits"],
                told=told.get(row[ADDRESS], ()),
            )
            for row in rows
        ]

    def _contradictions(self) -> tuple[Mapping[int, Sequence[Any]], set[int]]:
        told: dict[int, list[Any]] = {}
        if self._chains is None:
            return told, set()
        rows = self._chains.where(F.col("outcome") != BLOCK).select(ADDRESS, *_COLUMNS).collect()
        for row in sorted(rows, key=lambda row: max(row["least_end"], row["greatest_start"])):
            if row["outcome"] in CONTRADICTIONS and len(told.setdefault(row[ADDRESS], [])) < TOLD:
                told[row[ADDRESS]].append(row)
        return told, {row[ADDRESS] for row in rows if row["outcome"] == UNSOLVED}

    def release(self) -> None:
        """Gives back what is held."""
        for rows in reversed(self._kept):
            rows.unpersist()
        self._kept.clear()
