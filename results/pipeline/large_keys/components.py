"""Selects, from keys that are not linearizable, the operations that contradict each other. Nearly always they are few.

Two zones that meet in a prefix of a history also meet in the whole history, because zones only grow. And a contradiction of a
few values does not depend on other values. So these operations determine the return at which a history stops being
linearizable:

- the operations of values whose zones meet other zones in the whole history;
- the operations of values that were observed before they were written.

If values form chains, a whole chain counts as one value: all linked values are selected, or none.

A chain that contradicts itself has no zone. It may have met another zone before that, which this module does not examine;
`blame` does.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.decide.coding import ADDRESS
from results.pipeline.decide.whole import whole_keys
from results.pipeline.large_keys.clusters import value_of
from results.pipeline.large_keys.columns import schema_of
from results.pipeline.large_keys.paths import links
from results.pipeline.large_keys.zones import meeting
from results.pipeline.spark.tables import union

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from results.pipeline.large_keys.scan import Scan, Scanned, Scanning

# The memory of a link: its value and its expected value, both sorted, and the root.
BYTES_PER_LABEL: Final = 100
_LABELS: Final = schema_of(ADDRESS, "value", "root")


def contradicting(touches: DataFrame, scan: Scan, bad: Sequence[Scanned], scanning: Scanning) -> DataFrame:
    """Returns the operations of all values that contradict each other.

    Args:
        touches: Coded operations of keys that are not linearizable, all with unique values.
        scan: The scan that found them, of these and perhaps of other keys.
        bad: The results of the scan for these keys.
        scanning: The settings of the scan.
    """
    spark = touches.sparkSession
    keys = F.broadcast(spark.createDataFrame([(each.address,) for each in bad], schema_of(ADDRESS)))
    zoned = scan.zoned.join(keys, ADDRESS, "left_semi")
    meet = meeting(zoned, scan.slices.join(keys, ADDRESS, "left_semi"), scanning.bucket_events)
    values = meet.unionByName(zoned.where("late is not null").select(ADDRESS, "value"))
    whole: list[int] = []
    if scanning.chained:
        names = ("max_start_value", "min_end_value")
        ends = [(each.address, row[name]) for each in bad for row in each.contradictions for name in names]
        values = values.unionByName(spark.createDataFrame(ends, schema_of(ADDRESS, "value")))
        labels = _labels(scan.values.join(keys, ADDRESS, "left_semi"), scanning.memory_limit).localCheckpoint()
        whole = [row[ADDRESS] for row in labels.where("value is null").collect()]
        values = _linked(values, labels.where("value is not null"))
    rows = touches.withColumn("value", value_of())
    parts = [rows.join(values.distinct().localCheckpoint(), [ADDRESS, "value"], "left_semi").drop("value")]
    if whole:
        all_of = F.broadcast(spark.createDataFrame([(address,) for address in whole], schema_of(ADDRESS)))
        parts = [parts[0].join(all_of, ADDRESS, "left_anti"), touches.join(all_of, ADDRESS, "left_semi")]
    return union(parts)


def _linked(values: DataFrame, labels: DataFrame) -> DataFrame:
    """Returns these values and all values that are linked with them."""
    rooted = values.join(labels, [ADDRESS, "value"], "left")
    found = rooted.select(ADDRESS, F.coalesce("root", "value").alias("root")).distinct()
    others = labels.join(found, [ADDRESS, "root"], "left_semi").select(ADDRESS, "value")
    return found.select(ADDRESS, F.col("root").alias("value")).unionByName(others)


def _labels(values: DataFrame, memory_limit: int) -> DataFrame:
    """Returns the root of the value of each compare-and-set.

    The root is the first value of the chain, or the minimum value of a circle. A key with too many links has one row without a
    value.
    """
    label = partial(_label, most=memory_limit // BYTES_PER_LABEL)
    return links(values).mapInArrow(label, _LABELS)


def _label(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    for key, columns in whole_keys(batches, ("value", "expected"), most):
        found = [pa.nulls(1, pa.int64())] * 2 if columns is None else [pa.array(columns[0]), pa.array(roots(*columns))]
        keys = pa.array(np.full(len(found[0]), key))
        yield pa.RecordBatch.from_arrays([keys, *found], names=_LABELS.names)


def roots(values: NDArray[np.int64], expected: NDArray[np.int64]) -> NDArray[Any]:
    """Returns the root of each value.

    Args:
        values: The values that compare-and-sets write, all different.
        expected: The values that they expect.
    """
    order = np.argsort(values)
    place = np.minimum(np.searchsorted(values[order], expected), len(values) - 1)
    above = order[place]
    is_top = values[above] != expected
    above = np.where(is_top, np.arange(len(values)), above)
    smallest = values
    for _ in range(len(values).bit_length()):
        smallest, above = np.minimum(smallest, smallest[above]), above[above]
    # An ancestor of a value in a circle is in the circle too. After the loop, each minimum covers the whole circle.
    return np.where(is_top[above], expected[above], smallest[above])
