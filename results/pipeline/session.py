"""Starts Spark so that it works the same on every machine: bound to loopback, quiet, with this interpreter in its workers.

The law: what the user or `spark-submit` has decided is left alone, and what is decided here can be read in one place. A driver
in this process listens on 127.0.0.1 only, unless its executors are elsewhere. Python workers run the interpreter that runs the
driver. The JVM's chatter goes to a log file, never over the terminal's progress.
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
PARTITION_BYTES: Final = 64 << 20
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
_WORKER_PYTHON: Final = "PYSPARK_PYTHON"
MASTER: Final = "spark.master"
OWN_PYTHON: Final = "spark.pyspark.python"
_DEPLOY_MODE: Final = "spark.submit.deployMode"
_JAVA_OPTIONS: Final = "-XX:+UseParallelGC"
_LOG_BYTES: Final = 1 << 16
_ERROR: Final = " ERROR "
# What is in the line that says why a JVM, Spark in it, or the script that starts both, has given up.
_COMPLAINTS: Final = ("Exception in thread", "Error:", "Invalid ", "Unrecognized ", "JAVA_HOME", "No such file", _ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """How to start Spark.

    Attributes:
        master: The master's URL; None for this machine, or for what `spark-submit` says.
        driver_memory: The driver's heap, as Spark writes it; in local mode all work is done in it.
        log: Where the JVM's own output goes; None to leave it on standard error.
        scratch: Where shuffles and spilled rows go; None for Spark's default. Executors elsewhere have their own.
        settings: Other settings; they win over all that is set here.
    """

    master: str | None = None
    driver_memory: str = "4g"
    log: Path | None = None
    scratch: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def is_submitted() -> bool:
    """Says whether `spark-submit` started this process, so that its master and memory are not ours to choose."""
    return _SUBMITTED in os.environ


def submitted_settings() -> dict[str, str]:
    """Returns what `spark-submit` has decided; nothing if it did not start this process."""
    if not is_submitted():
        return {}
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - an extra that most commands do without

    SparkContext._ensure_initialized()  # noqa: SLF001 - the settings are in the JVM, to which this connects
    return dict(SparkConf().getAll())


def is_local(master: str) -> bool:
    """Says whether a master does all work in this process."""
    return master == "local" or master.startswith("local[")


def has_executors(settings: Mapping[str, str]) -> bool:
    """Says whether this process is the driver of executors elsewhere, to which it can bring files as it starts them."""
    return not is_local(settings.get(MASTER, LOCAL_MASTER)) and settings.get(_DEPLOY_MODE) != "cluster"


def settings_of(options: SessionOptions) -> dict[str, str]:
    """Returns every setting that a session of these options is started with."""
    chosen = {
        "spark.app.name": APP_NAME,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(PARTITION_BYTES),
        # Numbers of partitions are chosen from the data's size where they matter; this is where a plan does not say.
        "spark.sql.shuffle.partitions": "64",
        # A fixed answer to what the platform would decide otherwise: overflow and bad casts are errors, not nulls.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.sources.partitionOverwriteMode": "static",
        # A run may be called 2026 or 1e3; folders' names are text.
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
    """Holds the machine to have Spark's packages.

    Raises:
        NoSpark: One is missing.
    """
    for name in ("pyspark", "pandas"):
        if importlib.util.find_spec(name) is None:
            raise NoSpark(f"Spark is not installed (there is no {name}); `pip install 'labrys[spark]'` installs it")


@contextlib.contextmanager
def spark_session(options: SessionOptions) -> Iterator[SparkSession]:
    """Starts a session, and stops it in the end.

    Raises:
        NoSpark: pyspark is not installed, Java is missing, or the JVM does not start; the message says which.
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
            # A JVM that did not come up is told of by its log alone; one that did has said something to us too.
            said = f"{words} {complaint}".rstrip() if isinstance(error, Py4JError) else complaint or words
            raise NoSpark(
                f"Spark does not start on {settings.get(MASTER, LOCAL_MASTER)}: {said}. "
                "It needs Java 17 or 21, a master that answers, and settings that it knows"
            ) from error
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def _complaint(log: Path | None) -> str:
    """Returns what a JVM that did not start complained of first; nothing if it did not."""
    if log is None or not log.is_file():
        return ""
    with log.open("rb") as file:
        lines = file.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
    said = next((line for line in lines if any(word in line for word in _COMPLAINTS)), "")
    return said.rpartition(_ERROR)[2].removeprefix('Exception in thread "main" ').rstrip(".")


@contextlib.contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Sets what the JVM and the workers take from the environment, while the JVM starts."""
    # Only `spark-submit` heeds the setting of this name; where Python starts the JVM, it is the variable that counts.
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
    """Lets processes that are started meanwhile write their standard error to a file."""
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
