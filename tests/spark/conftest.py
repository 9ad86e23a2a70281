"""One Spark session for all tests that need one, because its start takes seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from results.pipeline.spark.session import SessionOptions, spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


# Spark's settings for compiling plans: those of most tests, and those of users.
COMPILING = {
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
}


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
            "spark.sql.shuffle.partitions": "2",
            **{name: interpreted for name, (interpreted, _) in COMPILING.items()},
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            # Nobody looks at the plans, whose texts take some of the time of a small job.
            "spark.sql.ui.explainMode": "simple",
            # Each of many small jobs has its own plan, and compiling it takes longer than running it. Most objects live for
            # one job, so there is room for them.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -Xmn600m -XX:MetaspaceSize=256m",
        },
    )
    with spark_session(options) as session:
        yield session


@pytest.fixture
def compiling(spark: SparkSession) -> SparkSession:
    """Returns a session that compiles its plans, like a user's."""
    session = spark.newSession()
    for name, (_, compiled) in COMPILING.items():
        session.conf.set(name, compiled)
    return session
