"""Runs something with Spark: starts a session with the code that its executors need, and cleans up."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from results.pipeline.errors import JobFailed, NoSpark
from results.pipeline.spark import session
from results.pipeline.spark.session import MASTER, SessionOptions, has_executors, require_spark, submitted_settings
from results.pipeline.spark.ship import reachable, shipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession


@contextlib.contextmanager
def running(
    *,
    master: str | None,
    driver_memory: str,
    scratch: Path | None = None,
    settings: Mapping[str, str],
    named: str | None = None,
    runs_systems: bool = False,
) -> Iterator[SparkSession]:
    """Yields a session whose executors have the code of this process.

    Args:
        master: The master's URL; None for this machine, or for the master of `spark-submit`.
        driver_memory: The driver's heap, as Spark writes it.
        scratch: The folder for shuffles; None for Spark's default.
        settings: Settings of the user.
        named: What the user names as a module or a file, such as a model; None if there is nothing.
        runs_systems: Whether executors run systems, and not only judge.

    Raises:
        NoSpark: Spark is missing or does not start.
        JobFailed: A job failed; a note names the log of Spark.
    """
    require_spark()
    folder = Path(tempfile.mkdtemp(prefix="labrys-spark-"))
    log = folder / "spark.log"
    decided = ({} if master is None else {MASTER: master}) | submitted_settings() | dict(settings)
    if has_executors(decided):
        more = shipped(decided, folder, named, runs_systems=runs_systems)
    else:
        more = reachable(decided, named) if runs_systems or named is not None else {}
    options = SessionOptions(
        master=master, driver_memory=driver_memory, log=log, scratch=scratch, settings=dict(settings) | more
    )
    # py4j also logs each exception that it raises to the root logger; an interrupt needs no traceback.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        with session.spark_session(options) as spark:
            yield spark
    except (JobFailed, NoSpark) as error:
        error.add_note(f"the log of Spark is {log}")
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
