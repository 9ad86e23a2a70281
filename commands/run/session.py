"""Carries out one run: runs the test, judges its history, and writes its folder.

The order of the files keeps them safe from a crash. Options and plan come first, and the history grows during the run. The
verdict comes before the files that are made from it. If a run breaks off, Labrys judges the history up to then.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from commands.options.compose import composed, info_of
from commands.run.again import repeated
from commands.run.executions import compared
from commands.run.judging import EarlyJudge
from commands.run.records import record_of
from harness import parts
from harness.console.plain import counted, one_line
from harness.console.terminal import PlainFormatter
from harness.history import HistoryWriter
from harness.outcome import RunOutcome
from harness.phases import Phases
from harness.run import run
from harness.suites.thresholds import measured
from harness.switch import switch_of
from harness.verdict import Verdict
from results.live.progress import Progress, announce_phase
from results.measure.measures import measure, why_missing
from results.publish import announce, publish

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from commands.options.compose import Settled
    from commands.run.executions import Earlier
    from harness.op import Operation, Value
    from harness.run import RunResult
    from harness.test import Test
    from harness.verdict import Part
    from results.record.record import TestInfo
    from results.store.store import Run, Store

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A run that was carried out.

    Attributes:
        outcome: Its outcome.
        run: Its folder.
        document: The content of its `results.json`.
        result: What the phases, the faults and the observations left.
        operations: The operations of the clients.
    """

    outcome: RunOutcome
    run: Run
    document: Mapping[str, Value]
    result: RunResult
    operations: Sequence[Operation]


def compose_and_carry_out(
    settled: Settled, *, store: Store, console: Console, earlier: Earlier | None = None
) -> Session:
    """Opens the cluster that the options name, and carries out one run on it.

    Args:
        settled: The options.
        store: The store for the run's folder.
        console: The console for progress.
        earlier: The run of programs in virtual time that this one is to repeat; None: it repeats none.

    Raises:
        LabrysError: The options do not fit together, or the system could not be set up.
        KeyboardInterrupt: A second interruption came.
    """
    from nemesis.planfile import to_json

    phases = Phases()
    with composed(settled, phases, partial(announce_phase, console)) as (test, plan):
        info = info_of(settled, test, plan)
        for kind, why in info.left_out.items():
            console.print(f"left out   {one_line(f'{kind}: {why}')}", soft_wrap=True)
        again: Callable[[RunResult, Run], Part] | None = None
        if settled.options.cluster.of_programs:
            again = partial(repeated, settled)
        elif earlier is not None and earlier.seed == settled.options.seed:
            again = partial(compared, earlier, settled, info.versions)
        return carry_out(
            test,
            info,
            plan=to_json(plan),
            store=store,
            console=console,
            phases=phases,
            again=again,
            edn=settled.options.output.edn,
            calls=settled.options.output.calls,
        )


def carry_out(
    test: Test,
    info: TestInfo,
    *,
    plan: str,
    store: Store,
    console: Console,
    phases: Phases | None = None,
    again: Callable[[RunResult, Run], Part] | None = None,
    edn: bool = False,
    calls: bool = False,
) -> Session:
    """Runs a test once, judges its history, and writes its folder.

    Args:
        test: The test.
        info: The record of the test for the store.
        plan: The plan of its faults, as text for `plan.json`.
        store: The store for the run's folder.
        console: The console for progress.
        phases: The phases so far; the run adds its own.
        again: Compares the run, given its folder, with another one, and returns a part about it; None: with none.
        edn: Whether to write the history and the results in Jepsen's format, too.
        calls: Whether to write each call of programs in virtual time.

    Raises:
        LabrysError: The system could not be set up, so there is no verdict; the folder has the logs.
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
            if calls:
                from clusters.sim.linux.cluster import log_calls

                log_calls(test.cluster, folder.calls_log)
            switch = switch_of(test.cluster)
            if switch is not None:
                switch.recording = folder.packets_pcap
            session = _run_and_judge(
                test, info, folder, console, Phases() if phases is None else phases, again=again, edn=edn
            )
            if session.outcome.verdict is not Verdict.INVALID:
                folder.packets_pcap.unlink(missing_ok=True)
            return session
    finally:
        store.finish(folder)
        root.removeHandler(handler)
        handler.close()


def _run_and_judge(
    test: Test,
    info: TestInfo,
    folder: Run,
    console: Console,
    phases: Phases,
    *,
    again: Callable[[RunResult, Run], Part] | None,
    edn: bool,
) -> Session:
    began_s = time.monotonic()
    # The nodes take seconds to start. Meanwhile, a thread loads what the report needs.
    threading.Thread(target=_load_for_later, name="load", daemon=True).start()
    history = HistoryWriter(folder.history_jsonl, {"test": info.name, "seed": str(info.seed)})
    try:
        with Progress(
            console=console,
            ops=history.ops,
            time_limit_s=test.time_limit_s,
            codes=info.codes,
            folder=folder,
        ) as progress:
            judge = EarlyJudge(test=test, info=info, history=history, folder=folder, phases=phases)
            result = run(
                test,
                history=history,
                logs_dir=folder.nodes_dir,
                observer=progress,
                phases=phases,
                recorded=judge.recorded,
            )
            history.close()
            progress.phase(f"judging {counted(len(history.ops), 'event')}")
            judged = judge.outcome(result)
            operations = judged.operations
            verdicts = parts.of_run(test, result, operations, workload=judged.parts)
            if again is not None and result.error is None and not result.interrupted:
                progress.phase("comparing the run with another one of its seed")
                verdicts.append(again(result, folder))
            checked_s = time.monotonic()
            progress.phase("writing the report")
            record = record_of(
                info,
                result,
                verdicts,
                operations,
                duration_s=checked_s - began_s,
                phases=phases.done,
                problems=judged.problems,
            )
            document = publish(folder, record, drawn=judged.drawn, phases=phases, events=history.ops if edn else None)
    finally:
        history.close()
    numbers = measured(info.thresholds, partial(measure, document), partial(why_missing, document))
    return Session(
        outcome=RunOutcome.of(
            verdicts,
            sentence=document["reason"],
            error=result.error,
            interrupted=result.interrupted,
            crossed=[figure.crossed for figure in numbers if figure.crossed is not None],
        ),
        run=folder,
        document=document,
        result=result,
        operations=operations,
    )


def _load_for_later() -> None:
    """Loads the modules that draw and write. An error is that of the code that needs them."""
    with contextlib.suppress(Exception):
        from results.page import report  # noqa: F401 - the point is to load them
        from results.stored import junit  # noqa: F401 - the point is to load them
