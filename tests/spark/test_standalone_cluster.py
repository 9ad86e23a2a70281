"""The job on a real cluster: Spark's own master and workers on loopback, without an installation of Labrys."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import cli
from checker.formats.parquet import write_operations
from tests.spark.histories import two_writes_and_a_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

WAIT_S = 240.0
LONGEST_S = 2400  # for daemons whose test was killed
LOOPBACK = "127.0.0.1"
SPARK = Path(pyspark.__file__).parent
OWN_MODEL = """
from checker.models import Inconsistent, Model
from own_words import REFUSAL


class Latest(Model):
    name = "latest"
    initial = None

    def step(self, state, op):
        if op.f == "write":
            return op.argument
        return state if not op.ok or op.result == state else Inconsistent(REFUSAL)
"""
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # these JVMs live too short for more


def free_port() -> int:
    """Returns a port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def without_labrys() -> dict[str, str]:
    """Returns the environment without variables that lead to an installation of Labrys."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@contextlib.contextmanager
def daemon(name: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a class of Spark in its own process group, and ends that group."""
    environment = {
        **without_labrys(),
        "SPARK_HOME": str(SPARK),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                "timeout", str(LONGEST_S), str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}",
                "--host", LOOPBACK, *arguments,
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


def wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> None:
    """Waits until a log has a line that matches `pattern`."""
    deadline_s = time.monotonic() + WAIT_S
    while not re.search(pattern, log.read_text(errors="replace")):
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline_s, f"no {pattern!r} within {WAIT_S} s:\n{log.read_text(errors='replace')}"
        time.sleep(0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A master with workers.

    Attributes:
        url: The master's.
        folders: Where each worker keeps what it has run.
    """

    url: str
    folders: Sequence[Path]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Returns a master with two workers."""
    home = tmp_path_factory.mktemp("cluster")
    port = free_port()
    url = f"spark://{LOOPBACK}:{port}"
    folders = [home / f"work-{number}" for number in range(2)]
    with contextlib.ExitStack() as stack:
        log = home / "master.log"
        first = stack.enter_context(daemon("master.Master", "--port", str(port), "--webui-port", "0", log=log))
        wait_for(log, r"I have been elected leader", first)
        workers = {}
        for folder in folders:
            log = folder.with_suffix(".log")
            options = ("--webui-port", "0", "--cores", "1", "--memory", "512m", "--work-dir", str(folder))
            workers[log] = stack.enter_context(daemon("worker.Worker", *options, url, log=log))
        for log, worker in workers.items():
            wait_for(log, r"Successfully registered with master", worker)
        yield Cluster(url=url, folders=folders)


def bare_python(folder: Path) -> Path:
    """Returns an interpreter without `site`, so that it sees no editable installation (a .pth file) of Labrys.

    Each start adds a line to the file `started` beside it.
    """
    path = folder / "bare-python"
    path.write_text(f'#!/bin/sh\necho >> "{folder}/started"\nexec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path


def by_analyze(*options: str) -> list[str]:
    """Returns the command `labrys analyze`; its own options follow those of Spark."""
    return [sys.executable, "-m", "cli", "analyze", *options]


def by_submit(*options: str) -> list[str]:
    """Returns the same through `spark-submit`."""
    return [str(SPARK / "bin" / "spark-submit"), *options, str(cli.__file__), "analyze"]


def judged(cluster: Cluster, folder: Path, command: Callable[..., list[str]], *options: str) -> dict[str, Any]:
    """Judges `operations.parquet` of a folder on a cluster; returns the summary, which has invalid keys.

    The workers' interpreter finds only the shipped Labrys.
    """
    python = bare_python(folder)
    nothing = subprocess.run(
        [str(python), "-c", "import checker"],
        capture_output=True, text=True, check=False, cwd="/", timeout=60, env=without_labrys(),
    )  # fmt: skip
    assert "No module named 'checker'" in nothing.stderr
    (folder / "started").unlink()
    settings = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.pyspark.python": str(python),
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": sysconfig.get_path("purelib"),
        "spark.local.dir": str(folder / "scratch"),
        "spark.ui.enabled": "false",
        # For a few rows, compiling plans is most of the work.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [
            *command("--master", cluster.url, "--driver-memory", "512m", *words),
            "operations.parquet", "--out", "out", "--no-pictures", "--format", "json", *options,
        ],
        capture_output=True, text=True, check=False, timeout=1100, cwd=folder,
        env={**os.environ, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": LOOPBACK},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr[-4000:]
    assert (folder / "started").exists()
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_workers_without_labrys_judge_what_is_shipped_to_them(cluster: Cluster, tmp_path: Path) -> None:
    """`labrys analyze` ships the package and its kernel, and finds the planted violations."""
    operations = [
        *two_writes_and_a_read(stale=False, key="good"),
        *two_writes_and_a_read(stale=True, key="bad", since=6),
    ]
    write_operations(tmp_path / "operations.parquet", operations, run="planted")
    before = {folder: set(folder.glob("app-*/*")) for folder in cluster.folders}
    document = judged(cluster, tmp_path, by_analyze)
    assert document["verdicts"] == {"valid": 1, "invalid": 1, "unknown": 0}
    assert [(row["key"], row["engine"]) for row in document["invalid"]] == [("bad", "kernel")]
    for folder in cluster.folders:
        assert set(folder.glob("app-*/*")) - before[folder], "both workers have run an executor"


@pytest.mark.night
def test_a_model_from_a_file_of_the_user_s_is_shipped(cluster: Cluster, tmp_path: Path) -> None:
    """With `spark-submit`: it ships the working folder's module and its imports. The workers' folders hold neither."""
    (tmp_path / "own_latest.py").write_text(OWN_MODEL)
    (tmp_path / "own_words.py").write_text("REFUSAL = 'this was not written last'\n")
    operations = [replace(op, order=index) for index, op in enumerate(two_writes_and_a_read(stale=False, key="good"))]
    operations += two_writes_and_a_read(stale=True, key="bad", since=6)
    write_operations(tmp_path / "operations.parquet", operations, run="planted")
    document = judged(cluster, tmp_path, by_submit, "--model", "own_latest:Latest")
    assert document["verdicts"] == {"valid": 1, "invalid": 1, "unknown": 0}
    [row] = document["invalid"]
    assert (row["key"], row["model"], row["engine"]) == ("bad", "latest", "operations")
    assert row["explanation"].endswith("this was not written last.")
    assert {name: document["order_agrees"][name] for name in ("valid", "invalid", "unknown")} == {
        "valid": 1, "invalid": 0, "unknown": 0,
    }  # fmt: skip
