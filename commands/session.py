"""One run from its first file in the store to its last: recorded, judged, published.

The order keeps what is known safe: what was asked for is written before anything is done, the history grows while the run goes
on, and the verdict is written before everything that is made from it. Whatever breaks off a run, what was recorded until
then is judged as far as it can be.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import clusters.options
from checker.formats.jepsen import write_history
from checker.formats.parquet import write_operations
from commands.compose import compose
from harness import parts
from harness.history import HistoryWriter, pair
from harness.plain import one_line
from harness.run import run
from harness.terminal import PlainFormatter
from results.progress import Progress
from results.publish import announce, publish
from results.record import RunRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from commands.compose import Settled
    from harness.op import Value
    from harness.run import Test
    from results.record import TestInfo
    from results.store import Run, Store

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a run left.

    Attributes:
        run: Its folder.
        document: What its `results.json` says.
        interrupted: Whether a person ended it early.
        error: What broke it off; None if nothing did.
    """

    run: Run
    document: Mapping[str, Value]
    interrupted: bool
    error: str | None


def compose_and_carry_out(
    options: Mapping[str, Any],
    settled: Settled,
    reproduce: str,
    *,
    defaults: Mapping[str, Value] | None,
    store: Store,
    console: Console,
) -> Session:
    """Opens the cluster that settled options of `labrys test` name, and carries out one run on it.

    Args:
        options: The settled options.
        settled: What follows from them.
        reproduce: The command that runs the same again.
        defaults: What a file of defaults decided; None if nothing.
        store: Where the run's folder is made.
        console: Where progress is shown.

    Raises:
        LabrysError: The options cannot be had together, or the system could not be set up.
        KeyboardInterrupt: A second interruption came.
    """
    with clusters.options.open_cluster(options) as cluster:
        test, info, plan = compose(options, cluster, settled, reproduce, defaults=defaults)
        for kind, why in info.left_out.items():
            console.print(f"left out   {one_line(f'{kind}: {why}')}", soft_wrap=True)
        return carry_out(test, info, plan=plan, store=store, console=console)


def carry_out(test: Test, info: TestInfo, *, plan: str, store: Store, console: Console) -> Session:
    """Runs a test once, judges it, and writes everything there is to read about it.

    Args:
        test: What to run.
        info: What is known of it before it runs.
        plan: The plan of its faults, as text for `plan.json`.
        store: Where the run's folder is made.
        console: Where progress is shown.

    Raises:
        LabrysError: The system could not be set up, so there is nothing to judge; the folder has the logs.
        KeyboardInterrupt: A second interruption came.
    """
    folder = store.create_run(info.name, info.started_utc)
    handler = logging.FileHandler(folder.log, encoding="utf-8")
    handler.setFormatter(PlainFormatter(LOG_FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with folder.hold():
            announce(folder, info)
            folder.write_text(folder.plan_json, plan)
            return _run_and_judge(test, info, folder, console)
    finally:
        store.finish(folder)
        root.removeHandler(handler)
        handler.close()


def _run_and_judge(test: Test, info: TestInfo, folder: Run, console: Console) -> Session:
    began_s = time.monotonic()
    history = HistoryWriter(folder.history_jsonl, {"test": info.name, "seed": str(info.seed)})
    try:
        with Progress(
            console=console,
            ops=history.ops,
            time_limit_s=test.time_limit_s,
            refusals=info.refusals,
            folder=folder,
        ) as progress:
            result = run(test, history=history, logs_dir=folder.nodes_dir, observer=progress)
            history.close()
            progress.phase(f"judging {len(history.ops)} events")
            operations = pair(history.ops)
            judged_s = time.monotonic()
            verdicts = parts.of_run(test, result, operations)
            checked_s = time.monotonic()
            progress.phase("writing the report")
            write_history(folder.history_edn, history.ops)
            write_operations(folder.operations_parquet, operations, run=f"{folder.test_name}/{folder.stamp}")
            record = RunRecord(
                test=info,
                duration_s=checked_s - began_s,
                parts=verdicts,
                faults=result.faults,
                operations=operations,
                sightings=result.sightings,
                positions=result.positions,
                timings={
                    "ready": result.ready_s or 0.0,
                    "workload": result.workload_s,
                    "check": checked_s - judged_s,
                },
                problems=result.problems,
            )
            document = publish(folder, record)
    finally:
        history.close()
    return Session(run=folder, document=document, interrupted=result.interrupted, error=result.error)
