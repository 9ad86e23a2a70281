"""Calls a function for many values on the executors of a session, as `harness.pool.Pool` does in processes of one machine."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from results.pipeline.errors import JobFailed, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

_has_begun = False  # in a worker of an executor, which calls functions for many jobs


def width_of(spark: SparkSession) -> int:
    """Returns how many calls run at the same time."""
    return max(1, spark.sparkContext.defaultParallelism)


def carried_out(
    spark: SparkSession, begin: Callable[[], object], function: Callable[..., Any], items: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Returns the results of the calls, in the order of the values.

    Args:
        spark: The session.
        begin: Called once in each worker, before its first call.
        function: The function, in a module that the executors have.
        items: The arguments of each call; they and the results are picklable.

    Raises:
        JobFailed: A call raised an error, or executors were lost; the message has Spark's first line.
    """
    pickled = [pickle.dumps(item) for item in items]
    try:
        done = (
            spark.sparkContext.parallelize(pickled, len(pickled))
            .mapPartitions(partial(_work, begin, function))
            .collect()
        )
    except (Py4JError, PySparkException) as error:
        raise JobFailed(f"the executors could not carry out the runs: {words_of(error)}") from error
    # What comes back is made by this code on machines of the user's own cluster, which can run any code here anyway.
    return [pickle.loads(answer) for answer in done]  # noqa: S301


def _work(begin: Callable[[], object], function: Callable[..., Any], pickled: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the results of the calls of one task, in a worker."""
    global _has_begun  # noqa: PLW0603 - as long as the process
    if not _has_begun:
        begin()
        _has_begun = True
    for item in pickled:
        yield pickle.dumps(function(*pickle.loads(item)))  # noqa: S301 - from the driver
