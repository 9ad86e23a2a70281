"""The cost of verdicts in Spark: the job beside the minimum work, and beside the check in one process.

The minimum ("floor") reads the same Parquet and sorts it by run, key and start, without output. The check in one process is
`labrys check` on the same operations in one file. All three run one after the other. The benchmark fails if the job misses or
misplaces a planted anomaly, or if any other key is not valid. With `--whole`, it also times each step of `labrys analyze` on
the same operations as a run with faults: preview of the rows, verdicts, timelines, trends and pictures.

With `--transactions`, the history has transactions of `list-append` instead, and the job decides it in parts
(`benchmarks.pipeline.transactions`).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa
from pyarrow import dataset, parquet
from rich.console import Console

from benchmarks.memory import Memory
from benchmarks.pipeline import transactions
from benchmarks.pipeline.histories import KINDS, generate, plan
from benchmarks.pipeline.records import record
from checker.formats.parquet import schema as file_schema
from results.pipeline.decide.asked import VerdictOptions
from results.pipeline.options import AnalysisOptions
from results.pipeline.schema import OPERATIONS
from results.pipeline.spark.job import analyze
from results.pipeline.spark.progress import SparkSteps
from results.pipeline.spark.session import SessionOptions, spark_session
from results.pipeline.spark.types import struct_of
from results.pipeline.spark.verdicts import verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.pipeline.histories import Plan

ROOT = str(Path(__file__).parents[2])
MODEL = "cas-register"


def timed(work: Callable[[], Any]) -> tuple[float, int, Any]:
    """Returns the duration of a call, its maximum memory, and its result."""
    with Memory() as memory:
        began_s = time.monotonic()
        result = work()
        took_s = time.monotonic() - began_s
    return took_s, memory.peak, result


def floor(rows: DataFrame) -> None:
    """Reads and sorts."""
    rows.sort("run", "key", "start_ns").write.format("noop").mode("overwrite").save()


def one_file(folder: Path, path: Path) -> None:
    """Writes all operations into one file in order of their invokes, the input of `labrys check`."""
    layout = file_schema()
    rows = dataset.dataset(folder).to_table().sort_by("invoke_index")
    with parquet.ParquetWriter(path, layout, compression="zstd") as writer:
        for batch in rows.to_batches(max_chunksize=1 << 17):
            writer.write_table(pa.Table.from_batches([batch]).cast(layout))


def check(path: Path, *options: str) -> dict[str, Any]:
    """Runs `labrys check` on the file."""
    command = [sys.executable, "-m", "cli", "check", str(path), *options, "--format", "json"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"labrys check ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return answer


def whole(spark: SparkSession, made: Plan, folder: Path) -> list[str]:
    """Runs `labrys analyze`, prints the time of each step, and returns the problems of the result."""
    record(made, folder)
    options = AnalysisOptions(paths=[str(folder)], out=str(folder.parent / "analysis"))
    watch = SparkSteps(spark, Console(file=io.StringIO()))
    took_s, peak, summary = timed(lambda: analyze(spark, options, watch))
    print(f"\nlabrys analyze: {took_s:.1f} s, peak {peak / 1e6:,.0f} MB")
    for name, seconds in watch.seconds.items():
        print(f"    {name:24}{seconds:10.1f}")
    broken = len(made.planted)
    expected = {verdict: count for verdict, count in (("valid", made.keys - broken), ("invalid", broken)) if count}
    return [] if summary.counts == expected else [f"labrys analyze says {summary.counts}, expected {expected}"]


def wrong(made: Plan, rows: Sequence[Any]) -> list[str]:
    """Returns the differences from the plan, as sentences."""
    expected = {f"k{planted.key}": planted for planted in made.planted}
    problems = []
    for row in rows:
        planted = expected.pop(row["key"], None)
        if planted is None or row["verdict"] != "invalid":
            problems.append(f"{row['key']} is {row['verdict']}: {row['cause'] or row['explanation']}")
            continue
        first, last = made.indexes(planted)
        if row["op_invoke_index"] is not None and not first <= row["op_invoke_index"] <= last:
            problems.append(
                f"{row['key']}: the {planted.kind} anomaly is between {first} and {last}, "
                f"and the verdict's operation is at {row['op_invoke_index']}"
            )
    problems += [f"{name}: the planted {planted.kind} anomaly was not found" for name, planted in expected.items()]
    return problems


def show(table: Sequence[tuple[str, float, int]], operations: int) -> None:
    """Prints a table of names, seconds and bytes; the floor is first."""
    floor_s = table[0][1]
    print(f"{'':28}{'seconds':>10}{'to floor':>10}{'1e6/s':>8}{'peak MB':>10}")
    for name, seconds, peak in table:
        print(f"{name:28}{seconds:10.1f}{seconds / floor_s:10.2f}{operations / seconds / 1e6:8.2f}{peak / 1e6:10,.0f}")


def compare_transactions(
    spark: SparkSession, wanted: int, folder: Path, *, memory_limit: int, native: bool, stale: bool
) -> int:
    """Makes a history of transactions, runs everything once, and prints the table, by micro-operations."""
    data = folder / "operations"
    generating_s, _, count = timed(lambda: transactions.write(data, wanted, stale=stale))
    bytes_there = sum(path.stat().st_size for path in data.glob("*.parquet"))
    print(f"{count:,} transactions of {transactions.MICRO} micro-operations, {bytes_there / 1e6:,.0f} MB")
    print(f"made in {generating_s:.1f} s; planted: {'a stale read' if stale else 'nothing'}")
    print(f"at most {memory_limit >> 20} MiB in a worker\n", flush=True)
    rows = spark.read.schema(struct_of(OPERATIONS)).parquet(str(data))
    floor_s, floor_bytes, _ = timed(lambda: transactions.floor(rows))
    job_s, job_bytes, row = timed(lambda: transactions.decided(rows, memory_limit))
    table = [("floor: read and sort", floor_s, floor_bytes), ("verdict", job_s, job_bytes)]
    expected = "invalid" if stale else "valid"
    problems = [f"the job says {row['verdict']}: {row['explanation']}"] if row["verdict"] != expected else []
    if native:
        path = folder / "operations.parquet"
        one_file(data, path)
        check_s, _, answer = timed(lambda: check(path, "--workload", "list-append"))
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        table.append(("labrys check, one process", check_s, used))
        if answer["valid"] is stale:
            problems.append(f"labrys check says {answer['valid']} of the same transactions")
    show(table, count * transactions.MICRO)
    print(f"\nengine: {row['engine']}; {row['explanation'][:100]}")
    for problem in problems:
        print(f"WRONG: {problem}")
    return 1 if problems else 0


def compare(spark: SparkSession, made: Plan, folder: Path, *, native: bool, all_of_it: bool) -> int:
    """Makes the history, runs everything once, and prints the table."""
    run, out = folder / "run", folder / "verdicts"
    data = run / "operations.parquet"
    generating_s, _, _ = timed(lambda: generate(spark, made).write.mode("overwrite").parquet(str(data)))
    rows = spark.read.schema(struct_of(OPERATIONS)).parquet(str(data))
    bytes_there = sum(path.stat().st_size for path in data.glob("*.parquet"))
    print(f"{made.operations:,} operations on {made.keys:,} keys, {bytes_there / 1e6:,.0f} MB")
    print(f"{100 * made.cas:g} % are compare-and-sets")
    print(f"made in {generating_s:.1f} s; planted: {len(made.planted)}\n", flush=True)
    floor_s, floor_bytes, _ = timed(lambda: floor(rows))
    table: list[tuple[str, float, int]] = [("floor: read and sort", floor_s, floor_bytes)]
    options = VerdictOptions(model=MODEL)
    job_s, job_bytes, _ = timed(lambda: verdicts(rows, options).write.mode("overwrite").parquet(str(out)))
    table.append(("verdicts", job_s, job_bytes))
    decided = spark.read.parquet(str(out))
    problems = wrong(made, decided.where("verdict <> 'valid'").orderBy("key").limit(1000).collect())
    if decided.count() != made.keys:
        problems.append(f"expected a verdict for each of {made.keys} keys, found {decided.count()}")
    if native:
        path = folder / "operations.parquet"
        one_file(data, path)
        check_s, _, answer = timed(lambda: check(path, "--model", MODEL))
        table.append(
            ("labrys check, one process", check_s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
        )
        if answer["valid"] is not (not made.planted):
            problems.append(f"labrys check says {answer['valid']} of the same operations")
    show(table, made.operations)
    engines = [f"{row[0]} {row[1]:,}" for row in decided.groupBy("engine").count().orderBy("engine").collect()]
    print(f"\nengines: {', '.join(engines)}", flush=True)
    if all_of_it:
        problems += whole(spark, made, run)
    for problem in problems[:20]:
        print(f"WRONG: {problem}")
    print("every planted anomaly was found, and no other" if not problems else f"{len(problems)} verdicts are wrong")
    return 1 if problems else 0


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=lambda text: int(float(text)), default=1_000_000, help="e.g. 1e7")
    parser.add_argument("--keys", choices=["many", "one"], default="many")
    parser.add_argument("--cas", type=float, help="share of compare-and-sets; 0.1 on many keys, else 0")
    parser.add_argument("--plant", choices=[*KINDS, "none"], help="only this anomaly; on one key `stale`, if not given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-check", action="store_true", help="without the check in one process")
    parser.add_argument("--whole", action="store_true", help="all of labrys analyze too, with its steps")
    parser.add_argument("--memory", default="4g", help="of the driver")
    parser.add_argument("--transactions", type=lambda text: int(float(text)), help="so many instead of --operations")
    parser.add_argument("--memory-limit", type=int, default=256, help="MiB of a worker, with --transactions")
    parser.add_argument("--folder", type=Path, help="where the data goes; else a temporary folder")
    args = parser.parse_args()
    one = args.keys == "one"
    cas = args.cas if args.cas is not None else (0.0 if one and args.plant != "cas" else 0.1)
    kinds = () if args.plant == "none" else KINDS if args.plant is None else (args.plant,)
    made = plan(args.operations, one_key=one, cas=cas, seed=args.seed, kinds=kinds)
    folder = args.folder or Path(tempfile.mkdtemp(prefix="labrys-pipeline-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [ROOT, os.environ.get("PYTHONPATH")])
    )  # for the workers too
    options = SessionOptions(driver_memory=args.memory, log=folder / "spark.log", scratch=folder / "scratch")
    try:
        with spark_session(options) as spark:
            if args.transactions is not None:
                limit, stale = args.memory_limit << 20, args.plant == "stale"
                return compare_transactions(
                    spark, args.transactions, folder, memory_limit=limit, native=not args.no_check, stale=stale
                )
            return compare(spark, made, folder, native=not args.no_check, all_of_it=args.whole)
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
