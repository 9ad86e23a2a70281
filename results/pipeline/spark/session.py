"""Starts Spark in the same way on every machine: bound to loopback, quiet, with this Python interpreter in its workers.

The rule: settings of the user or of `spark-submit` are not changed, and all other settings are chosen in this module. A driver
in this process listens only on 127.0.0.1, unless its executors are elsewhere. Python workers run the interpreter of the driver.
The JVM's own output goes to a log file, so that it never mixes with the progress on the terminal.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from results.pipeline.errors import NoSpark, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

APP_NAME: Final = "labrys"
LOCAL_MASTER: Final = "local[*]"
LOOPBACK: Final = "127.0.0.1"
ARROW_ROWS: Final = 1 << 16
ARROW_BYTES: Final = 64 << 20
PARTITION_BYTES: Final = 64 << 20
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
_WORKER_PYTHON: Final = "PYSPARK_PYTHON"
MASTER: Final = "spark.master"
OWN_PYTHON: Final = "spark.pyspark.python"
_DEPLOY_MODE: Final = "spark.submit.deployMode"
_JAVA_OPTIONS: Final = "-XX:+UseParallelGC"
_LOG_BYTES: Final = 1 << 16
_ERROR: Final = " ERROR "
# Words in the line with the reason why the JVM, Spark, or the script that starts them, failed.
_COMPLAINTS: Final = ("Exception in thread", "Error:", "Invalid ", "Unrecognized ", "JAVA_HOME", "No such file", _ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The options of the Spark session.

    Attributes:
        master: The master's URL; None for this machine, or for the master of `spark-submit`.
        driver_memory: The driver's heap, as Spark writes it; a local master does all work in it.
        log: The file for the JVM's own output; None to leave it on standard error.
        scratch: The folder for shuffles and spilled rows; None for Spark's default. Executors elsewhere have their own.
        settings: Other settings; they override all that this module sets.
    """

    master: str | None = None
    driver_memory: str = "4g"
    log: Path | None = None
    scratch: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def is_submitted() -> bool:
    """Returns whether `spark-submit` started this process; then it chose the master and the memory."""
    return _SUBMITTED in os.environ


def submitted_settings() -> dict[str, str]:
    """Returns the settings of `spark-submit`; nothing if it did not start this process."""
    if not is_submitted():
        return {}
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - an extra that most commands do without

    SparkContext._ensure_initialized()  # noqa: SLF001 - the settings are in the JVM, to which this connects
    return dict(SparkConf().getAll())


def is_local(master: str) -> bool:
    """Returns whether a master does all work in this process."""
    return master == "local" or master.startswith("local[")


def has_executors(settings: Mapping[str, str]) -> bool:
    """Returns whether this process is the driver of executors elsewhere; then it can send files to them at their start."""
    return not is_local(settings.get(MASTER, LOCAL_MASTER)) and settings.get(_DEPLOY_MODE) != "cluster"


def settings_of(options: SessionOptions) -> dict[str, str]:
    """Returns all settings of a session with these options."""
    chosen = {
        "spark.app.name": APP_NAME,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BYTES),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(PARTITION_BYTES),
        # The default for plans that do not set a number of partitions from the size of the data.
        "spark.sql.shuffle.partitions": "64",
        # Overflows and bad casts are errors on every platform, not nulls.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.sources.partitionOverwriteMode": "static",
        # Names of folders stay text: a run may have the name 2026 or 1e3.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if not is_submitted():
        master = options.master or LOCAL_MASTER
        chosen |= {
            MASTER: master,
            "spark.driver.memory": options.driver_memory,
            "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
            "spark.ui.enabled": "false",
        }
        if is_local(master):
            chosen |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        if options.scratch is not None:
            chosen["spark.local.dir"] = str(options.scratch)
    return chosen | dict(options.settings)


def require_spark() -> None:
    """Checks that Spark's packages are installed.

    Raises:
        NoSpark: One is missing.
    """
    for name in ("pyspark", "pandas"):
        if importlib.util.find_spec(name) is None:
            raise NoSpark(f"Spark is not installed (there is no {name}); `pip install 'labrys[spark]'` installs it")


@contextlib.contextmanager
def spark_session(options: SessionOptions) -> Iterator[SparkSession]:
    """Starts a session, and stops it at the end.

    Raises:
        NoSpark: pyspark is not installed, Java is missing, or the JVM does not start; the message names the reason.
    """
    require_spark()
    from py4j.protocol import Py4JError  # noqa: PLC0415 - an extra that most commands do without
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession as Session  # noqa: PLC0415

    settings = settings_of(options)
    builder: Any = Session.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _environment(settings), _stderr_to(options.log):
        try:
            spark = builder.getOrCreate()
        except (Py4JError, PySparkException, OSError, RuntimeError) as error:
            complaint, words = _complaint(options.log), words_of(error)
            # If the JVM did not start, only its log has the reason; if it did, its exception has words too.
            reason = f"{words} {complaint}".rstrip() if isinstance(error, Py4JError) else complaint or words
            raise NoSpark(
                f"Spark does not start on {settings.get(MASTER, LOCAL_MASTER)}: {reason}. "
                "It needs Java 17 or 21, a master that answers, and settings that it knows"
            ) from error
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def _complaint(log: Path | None) -> str:
    """Returns the first line of a JVM's log with the reason why it did not start; empty if there is none."""
    if log is None or not log.is_file():
        return ""
    with log.open("rb") as file:
        lines = file.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
    complaint = next((line for line in lines if any(word in line for word in _COMPLAINTS)), "")
    return complaint.rpartition(_ERROR)[2].removeprefix('Exception in thread "main" ').rstrip(".")


@contextlib.contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Sets the environment variables of the JVM and the workers while the JVM starts."""
    # Only `spark-submit` uses the setting of this name; if Python starts the JVM, only the variable has an effect.
    wanted = {_WORKER_PYTHON: settings.get(OWN_PYTHON) or os.environ.get(_WORKER_PYTHON) or sys.executable}
    if is_local(settings.get(MASTER, "")):
        wanted["SPARK_LOCAL_IP"] = LOOPBACK
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Sends the standard error of processes that start meanwhile to a file."""
    if log is None or is_submitted():
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
