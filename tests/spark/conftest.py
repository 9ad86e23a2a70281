"""One Spark for all tests that need one: it takes seconds to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from results.pipeline.session import SessionOptions, spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Returns a session on two cores of this machine."""
    scratch = tmp_path_factory.mktemp("spark")
    options = SessionOptions(
        master="local[2]",
        driver_memory="1g",
        log=scratch / "spark.log",
        scratch=scratch / "scratch",
        settings={
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            # Many small jobs, each a plan of its own: compiling them well takes longer than running them.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    with spark_session(options) as session:
        yield session
