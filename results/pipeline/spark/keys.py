"""The runs and keys of a table of operations, each with its number and its count of operations.

A run and a key are texts, which make every shuffle and sort slow. So a 64-bit hash represents them. Two keys with the same hash
would get one verdict. So the hash is salted until a query shows that all hashes differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.decide.coding import ADDRESS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def address(salt: int) -> Column:
    """Returns the number of a row's run and key; `keys_of` finds a salt without collisions."""
    return F.xxhash64(F.col("run"), F.col("key"), F.col("key").isNull(), F.lit(salt))


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The runs and keys.

    Attributes:
        table: A row for each: `run`, `key`, `address`, `operations`, and `orders`, the number of operations with an order.
        salt: The salt of `address`.
        count: The number of keys.
        operations: The number of operations.
        ordered: The number of keys that have an operation with an order.
    """

    table: DataFrame
    salt: int
    count: int
    operations: int
    ordered: int


def keys_of(operations: DataFrame) -> Keys:
    """Counts the operations of each run and key; reads three columns once."""
    counted = (
        operations.groupBy("run", "key")
        .agg(F.count("*").alias("operations"), F.count("order").alias("orders"))
        .localCheckpoint()
    )
    salt = 0
    while True:
        row = counted.agg(
            F.count("*").alias("keys"),
            F.count_distinct(address(salt)).alias("distinct"),
            F.coalesce(F.sum("operations"), F.lit(0)).alias("operations"),
            F.count_if(F.col("orders") > 0).alias("ordered"),
        ).head()
        assert row is not None  # noqa: S101 - an aggregate without groups has one row
        if row["keys"] == row["distinct"]:
            break
        salt += 1
    return Keys(
        table=counted.withColumn(ADDRESS, address(salt)),
        salt=salt,
        count=row["keys"],
        operations=row["operations"],
        ordered=row["ordered"],
    )
