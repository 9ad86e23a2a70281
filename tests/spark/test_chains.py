"""Registers with compare-and-set: the dataflow gives the results of `labrys check`."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from checker.checking import make_model
from harness.op import Operation, OpType
from harness.randomness import stream
from results.pipeline.decide.targets import DATAFLOW
from results.pipeline.decide.verdicts import VerdictOptions
from results.pipeline.large_keys import components, paths
from results.pipeline.schema import OPERATIONS
from results.pipeline.spark.types import struct_of
from results.pipeline.spark.verdicts import verdicts
from tests.spark.histories import alone, by_check, write_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

LENGTH = 60
SHORT = 16


def operations_of(spark: SparkSession, folder: Path, runs: Mapping[str, Sequence[Operation]]) -> DataFrame:
    """Returns the operations of runs in an arbitrary order and partitioning."""
    return spark.read.schema(struct_of(OPERATIONS)).parquet(*write_runs(folder, runs)).repartition(2)


def history(random: Random, size: int) -> list[Operation]:
    """Returns a history mostly of compare-and-sets with unique values, with wrong results and crashes."""
    lies, crashes = random.choice([0.0, 0.05, 0.3]), random.choice([0.0, 0.2])
    spread = random.choice([0.8, 3.0])
    times = [(place - spread * random.random(), place + spread * random.random()) for place in range(size)]
    rank = {time: index for index, time in enumerate(sorted(time for pair in times for time in pair))}
    written: list[int | None] = [None]
    done = []
    for place, (start, end) in enumerate(times):
        f = random.choice(["read", "write", "cas", "cas"])
        seen = random.choice([*written, 1000]) if random.random() < lies else written[-1]
        crashed = random.random() < crashes
        done.append(
            Operation(
                process=place,
                f=f,
                value={"read": None, "write": place, "cas": [seen, place]}[f],
                result=seen if f == "read" and not crashed else None,
                type=OpType.INFO if crashed else OpType.OK,
                start_ns=rank[start],
                end_ns=rank[end],
                invoke_index=rank[start],
                complete_index=rank[end],
            )
        )
        if f != "read" and (not crashed or random.random() < 0.5):
            written.append(place)
    return sorted(done, key=lambda op: op.invoke_index)


def chain(length: int, lies: Mapping[int, int]) -> list[Operation]:
    """Returns a history of sequential compare-and-sets, with reads at the places of `lies` instead."""
    done: list[Operation] = []
    state: int | None = None
    for place in range(length):
        if place in lies:
            done.append(alone(place, "read", None, lies[place]))
        else:
            done.append(alone(place, "cas", [state, place]))
            state = place
    return done


def test_chains_say_what_the_checker_says(
    spark: SparkSession, tmp_path: Path, heat: Callable[[int, int], None]
) -> None:
    """Crashes, wrong results, two compare-and-sets on one value, cycles, long chains: the results are the checker's."""
    random = stream(1, "chains")
    runs = {f"run-{number}": history(random, random.randint(1, 14)) for number in range(120)}
    runs |= {"valid": chain(LENGTH, {}), "stale": chain(LENGTH, {LENGTH // 2: 3, LENGTH - 5: 7})}
    # The stale read comes before the chain contradicts itself, with a value unrelated to the chain.
    runs["before"] = [
        alone(0, "write", 1),
        alone(1, "write", 2),
        alone(2, "read", None, 1),
        alone(3, "cas", [1, 3]),
        alone(4, "cas", [1, 4]),
    ]
    theirs = by_check(make_model("cas-register", None, {}), runs)
    heat(0, 3)
    found = verdicts(operations_of(spark, tmp_path, runs), VerdictOptions()).collect()
    ours = {(row["run"], row["key"]): row.asDict() for row in found}
    assert len(found) == len(ours) == len(runs)
    for name, expected in theirs.items():
        ours[name]["counterexample"] = json.loads(ours[name]["counterexample"] or "[]")
        assert {field: ours[name][field] for field in expected} == expected, name
    assert Counter(row["engine"] for row in found)[DATAFLOW] == len(runs)
    assert {row["kind"] for row in found} >= {None, "phantom", "stale", "lost-update"}


def test_what_rests_on_a_long_chain_is_named(
    spark: SparkSession, tmp_path: Path, heat: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If too many values lead to a contradiction, verdict and operation are the checker's, and the explanation is short."""
    monkeypatch.setattr(paths, "LONGEST", 3)
    # The links have no space either.
    monkeypatch.setattr(components, "BYTES_PER_LABEL", 1 << 40)
    runs = {"stale": chain(SHORT, {SHORT // 2: 3, SHORT - 2: 5})}
    [expected] = by_check(make_model("cas-register", None, {}), runs).values()
    heat(0, 3)
    [row] = verdicts(operations_of(spark, tmp_path, runs), VerdictOptions()).collect()
    for field in ("verdict", "analyzer", "operations", "op_invoke_index", "op_complete_index"):
        assert row[field] == expected[field], field
    # Without a counterexample, the kind is the analyzer's, from all operations of the contradiction.
    assert (row["kind"], expected["kind"]) == ("order", "stale")
    assert row["counterexample"] is None
    assert re.match(
        r"Process \d+ read 3 at .*, but process \d+'s cas from 3 to 4 had completed at ", row["explanation"]
    )
