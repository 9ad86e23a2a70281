"""If Spark does not start, the error is one sentence without a traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--driver-memory", "3x"], "Invalid maximum heap size"),
        (["--master", "somewhere"], "Master must either be yarn or start with spark, k8s, or local"),
        # Nobody has this address (RFC 5737). Java starts, and then Spark fails.
        (["--conf", "spark.driver.bindAddress=203.0.113.1"], "BindException"),
    ],
)
def test_the_reason_is_told(tmp_path: Path, options: list[str], reason: str) -> None:
    """Settings that the JVM, `spark-submit` or Spark refuses."""
    command = [sys.executable, "-m", "cli", "analyze", str(tmp_path), "--out", str(tmp_path / "out"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == ExitCode.INTERNAL, done.stderr
    assert done.stderr.startswith("labrys: Spark does not start"), done.stderr
    assert reason in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr
