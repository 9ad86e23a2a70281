"""`labrys hunt --spark`: the executors of a cluster carry out the runs, with the output of one machine."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cli
from results.pipeline.errors import JobFailed
from results.pipeline.spark.carrying import carried_out, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

HUNT = (
    "hunt", "--bug", "follower-reads", "--nodes", "3", "--nemesis", "bridge", "--fault-on", "0.5-1",
    "--fault-quiet", "0.5-1", "--rate", "8", "--time-limit", "4", "--seed", "5", "--runs", "4", "--finds", "9",
)  # fmt: skip


def test_a_hunt_on_executors_finds_what_one_machine_finds(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line of a find is the same, and so are the counts."""
    asked: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def running(**words: Any) -> Iterator[SparkSession]:
        asked.append(words)
        yield spark

    monkeypatch.setattr("results.pipeline.spark.running.running", running)
    outputs = []
    for where in (("--jobs", "1"), ("--spark", "spark://host:7077")):
        assert cli.invoke([*HUNT, *where, "--store", str(tmp_path)]) == 1
        captured = capsys.readouterr()
        (counts,) = [line.partition(": ")[2] for line in captured.err.splitlines() if line.startswith("4 runs in ")]
        outputs.append((captured.out, counts))
    assert outputs[0] == outputs[1]
    assert outputs[0][0].count("labrys test --seed") >= 2
    assert [(words["master"], words["runs_systems"]) for words in asked] == [("spark://host:7077", True)]


def test_an_error_of_a_call_is_an_error_of_the_job(spark: SparkSession) -> None:
    """The order of the values is that of the results, and an error has Spark's first line."""
    assert width_of(spark) == 2
    assert carried_out(spark, list, divmod, [(7, 2), (9, 3), (5, 4)]) == [(3, 1), (3, 0), (1, 1)]
    with pytest.raises(JobFailed, match="the executors could not carry out the runs"):
        carried_out(spark, list, partial(divmod, 1), [(0,)])
