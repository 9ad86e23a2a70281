"""Each row between the steps of the dataflow for large keys has the columns that are described."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import CAS, READ, WRITE
from results.pipeline.decide.coding import CODED, NIL
from results.pipeline.large_keys.clusters import AFTER
from results.pipeline.large_keys.columns import schema_of
from results.pipeline.large_keys.scan import Scan, Scanning
from results.pipeline.large_keys.zones import scanned
from results.pipeline.spark.types import struct_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_rows_have_the_columns_that_are_described(spark: SparkSession) -> None:
    """Each row between the steps has the columns and types of `results.pipeline.large_keys.columns`."""
    scanning = Scanning(initial=NIL, bucket_events=3, memory_limit=1 << 20, chained=True)
    operations = [(WRITE, 1, 0), (READ, 1, 0), (CAS, 1, 2), (READ, 2, 0), (WRITE, 3, 0), (READ, 5, 0)]
    rows = [(7, *operation, 2 * place, 2 * place + 1) for place, operation in enumerate(operations)]
    touches = spark.createDataFrame(rows, struct_of(CODED))
    scan = Scan(touches.withColumns({name: F.lit(1).cast("long") for name in AFTER}), scanning)
    assert scan._chains is not None
    for found in (scan.values, scan._chains, scan.zoned, scan.slices, scanned(scan.slices)):
        described = schema_of(*found.columns)
        assert [column.dataType for column in found.schema] == [column.dataType for column in described], found.columns
    scan.release()
