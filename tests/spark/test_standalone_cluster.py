"""The job on a real cluster: Spark's own master and workers on loopback, with nothing of Labrys installed on them."""

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
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from checker.formats.parquet import write_operations
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

WAIT_S = 240.0
LONGEST_S = 1200  # for daemons whose test was killed
LOOPBACK = "127.0.0.1"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # these JVMs live too short for more


def free_port() -> int:
    """Returns a port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def daemon(name: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a class of Spark in a process group of its own, and ends that group."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                "timeout", str(LONGEST_S), str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}",
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
    """Waits until a log says something."""
    deadline_s = time.monotonic() + WAIT_S
    while not re.search(pattern, log.read_text(errors="replace")):
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline_s, f"no {pattern!r} within {WAIT_S} s:\n{log.read_text(errors='replace')}"
        time.sleep(0.2)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Returns the URL of a master with two workers."""
    port = free_port()
    url = f"spark://{LOOPBACK}:{port}"
    log = tmp_path / "master.log"
    with contextlib.ExitStack() as stack:
        started = daemon("master.Master", "--port", str(port), "--webui-port", "0", log=log)
        first = stack.enter_context(started)
        wait_for(log, r"I have been elected leader", first)
        for number in range(2):
            worker_log = tmp_path / f"worker-{number}.log"
            options = (
                "--webui-port",
                "0",
                "--cores",
                "1",
                "--memory",
                "512m",
                "--work-dir",
                str(tmp_path / f"work-{number}"),
            )
            worker = stack.enter_context(daemon("worker.Worker", *options, url, log=worker_log))
            wait_for(worker_log, r"Successfully registered with master", worker)
        yield url


def register(key: str, *, stale: bool) -> list[Operation]:
    """Returns two writes and a read after both, which returns the first of them if it is to be stale."""
    seen = 1 if stale else 2
    told = [("write", 1, 1), ("write", 2, 2), ("read", None, seen)]
    base = 0 if key == "good" else 6
    return [
        Operation(
            process=number,
            f=f,
            value=value,
            result=result,
            type=OpType.OK,
            start_ns=base + 2 * number,
            end_ns=base + 2 * number + 1,
            invoke_index=base + 2 * number,
            complete_index=base + 2 * number + 1,
            key=key,
        )
        for number, (f, value, result) in enumerate(told)
    ]


def bare_python(folder: Path) -> Path:
    """Returns an interpreter that knows no installation of Labrys: an editable one is a .pth file, which only `site` reads."""
    path = folder / "bare-python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path


def test_workers_without_labrys_judge_what_is_shipped_to_them(master: str, tmp_path: Path) -> None:
    """`labrys analyze --master spark://...` brings the package and its kernel along, and finds what is planted."""
    operations = [*register("good", stale=False), *register("bad", stale=True)]
    write_operations(tmp_path / "operations.parquet", operations, run="planted")
    python = bare_python(tmp_path)
    nothing = subprocess.run(
        [str(python), "-c", "import checker"], capture_output=True, text=True, check=False, cwd="/", timeout=60
    )
    assert "No module named 'checker'" in nothing.stderr
    settings = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.pyspark.python": str(python),
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": sysconfig.get_path("purelib"),
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(tmp_path / "scratch"),
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [
            sys.executable, "-m", "cli", "analyze", str(tmp_path / "operations.parquet"), "--master", master,
            "--driver-memory", "512m", "--out", str(tmp_path / "out"), "--format", "json", *words,
        ],
        capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["verdicts"] == {"valid": 1, "invalid": 1, "unknown": 0}
    # The kernel ran in workers whose interpreter has no other Labrys than the one that was shipped.
    assert [(row["key"], row["engine"]) for row in found["invalid"]] == [("bad", "kernel")]
    worked = sum(1 for number in range(2) for _ in (tmp_path / f"work-{number}").glob("app-*/*"))
    assert worked == 2, "both workers have run an executor"
