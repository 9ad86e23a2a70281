"""The operations of a run are judged once: in a thread while the run goes on, or after it."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from checker.formats.parquet import read_operations
from commands.run.judging import EarlyJudge
from harness.clock import run_virtual
from harness.errors import LabrysError
from harness.history import HistoryWriter
from harness.op import OpType
from harness.phases import Phases
from harness.run import RunResult
from harness.verdict import Part, Verdict
from results.record.record import TestInfo
from results.store.store import Store
from workloads.register.workload import RegisterWorkload

if TYPE_CHECKING:
    from pathlib import Path

    from harness.test import Test

INFO = TestInfo(
    name="t",
    seed=1,
    reproduce="",
    started_utc=datetime(2026, 7, 29, tzinfo=UTC),
    system="s",
    workload="w",
    nodes=("n1",),
)


class Workload:
    """Records the threads that check; fails with `error` if there is one."""

    name = "w"

    def __init__(self, error: Exception | None = None) -> None:
        self.threads: list[str] = []
        self._error = error

    def check(self, operations: Any, observed: Any) -> list[Part]:
        """Counts the operations."""
        self.threads.append(threading.current_thread().name)
        if self._error is not None:
            raise self._error
        return [Part(name="count", verdict=Verdict.VALID, reason=f"{len(operations)} operations")]


def judge(workload: Any, tmp_path: Path) -> EarlyJudge:
    """A judge of one write."""
    history = HistoryWriter(tmp_path / "history.jsonl", {})
    for kind in (OpType.INVOKE, OpType.OK):
        history.append(time_ns=1, op_type=kind, process=0, f="write", value=1)
    history.close()
    folder = Store(tmp_path / "store").create_run("t", INFO.started_utc)
    return EarlyJudge(
        test=cast("Test", SimpleNamespace(workload=workload)),
        info=INFO,
        history=history,
        folder=folder,
        phases=Phases(),
    )


def test_a_thread_judges_while_the_run_goes_on(tmp_path: Path) -> None:
    """The outcome is that of the thread; nothing is judged twice, and the plots are drawn."""
    workload = Workload()
    early = judge(workload, tmp_path)
    early.recorded(RunResult())
    outcome = early.outcome(RunResult())
    assert [part.reason for part in outcome.parts] == ["1 operations"]
    assert workload.threads == ["judge"]
    assert outcome.drawn is not None
    assert "rate" in outcome.drawn
    assert [phase.name for phase in early.phases.done] == ["judge", "draw", "write history"]
    assert list(read_operations(early.folder.operations_parquet)) == list(outcome.operations)


def test_a_run_that_broke_off_is_judged_after_it(tmp_path: Path) -> None:
    """Nobody handed the operations over."""
    workload = Workload()
    assert [part.reason for part in judge(workload, tmp_path).outcome(RunResult()).parts] == ["1 operations"]
    assert workload.threads == [threading.current_thread().name]


def test_a_simulated_run_is_judged_after_it(tmp_path: Path) -> None:
    """A thread would take real time from a run whose time is virtual."""
    workload = Workload()
    early = judge(workload, tmp_path)

    async def whole() -> None:
        early.recorded(RunResult())

    run_virtual(whole())
    assert workload.threads == []
    early.outcome(RunResult())
    assert workload.threads == [threading.current_thread().name]


def test_a_second_file_that_cannot_be_written_costs_no_verdict(tmp_path: Path) -> None:
    """The parts are there, and the problem is a sentence."""
    file = "operations.parquet"
    early = judge(Workload(), tmp_path)
    (early.folder.path / file).mkdir()
    (early.folder.path / file / "in the way").write_text("")
    judged = early.outcome(RunResult())
    assert [part.verdict for part in judged.parts] == [Verdict.VALID]
    (problem,) = judged.problems
    assert problem.startswith(f"{file} could not be made: ")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LabrysError("too large"), r"The operations could not be judged: too large"),
        (
            ZeroDivisionError("oops"),
            r"The operations could not be judged: workload w: check \(\S*py:\d+\) failed: ZeroDivisionError: oops; correct .*",
        ),
    ],
)
def test_an_error_of_a_users_workload_is_a_part_that_is_unknown(tmp_path: Path, error: Exception, reason: str) -> None:
    """On purpose or not: it costs the part, and not the verdict."""
    early = judge(Workload(error), tmp_path)
    early.recorded(RunResult())
    (part,) = early.outcome(RunResult()).parts
    assert (part.name, part.verdict) == ("w", Verdict.UNKNOWN)
    assert re.fullmatch(reason, part.reason)


def test_an_error_of_a_workload_of_labrys_is_raised_after_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a bug, and nobody swallows it."""

    def check(*_: object) -> NoReturn:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(RegisterWorkload, "check", check)
    broken = judge(RegisterWorkload(), tmp_path)
    broken.recorded(RunResult())
    with pytest.raises(ZeroDivisionError, match="oops"):
        broken.outcome(RunResult())
