"""Judges the operations of a run, writes and draws them, while the run still compares the replicas, collects logs and stops.

From the end of the final reads, the operations do not change any more. So a thread judges them in this time. If the run breaks
off before, or takes place in simulated time, they are judged after it.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from checker.formats.parquet import write_operations
from harness import parts
from harness import phases as ph
from harness.clock import in_virtual_time
from harness.history import pair
from results.publish import tried
from results.record.record import RunRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.history import HistoryWriter
    from harness.op import Operation
    from harness.phases import Phases
    from harness.run import RunResult
    from harness.test import Test
    from harness.verdict import Part
    from harness.workload import Observed
    from results.record.record import TestInfo
    from results.store.store import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What follows from the operations alone.

    Attributes:
        operations: The operations of the clients.
        parts: The parts of the workload.
        drawn: The plots, as `results.page.report.plots_of` returns them; None if they could not be drawn.
        problems: The files that could not be written, as sentences; history.jsonl has the operations.
    """

    operations: Sequence[Operation]
    parts: Sequence[Part]
    drawn: Mapping[str, tuple[str, str]] | None
    problems: Sequence[str]


@dataclass(slots=True, kw_only=True)
class EarlyJudge:
    """Judges the operations of one run once, early if it can.

    Attributes:
        test: The test.
        info: The record of the test for the store.
        history: Its history.
        folder: The folder of the run.
        phases: Measures the phases `judge`, `draw` and `write history`.
    """

    test: Test
    info: TestInfo
    history: HistoryWriter
    folder: Run
    phases: Phases
    _thread: threading.Thread | None = None
    _done: list[Judged | BaseException] = field(default_factory=list)

    def recorded(self, result: RunResult) -> None:
        """Begins to judge in a thread. The run calls this method when no operation follows any more."""
        if in_virtual_time():
            return
        observed = parts.observed(result)

        def work() -> None:
            try:
                self._done.append(self._judge(observed))
            except BaseException as error:  # noqa: BLE001 - the caller of `outcome` gets it
                self._done.append(error)

        # A second Ctrl-C ends the process at once, also during a long search.
        self._thread = threading.Thread(target=work, name="judge", daemon=True)
        self._thread.start()

    def outcome(self, result: RunResult) -> Judged:
        """Returns the judgement, after the run."""
        if self._thread is None:
            return self._judge(parts.observed(result))
        self._thread.join()
        (done,) = self._done
        if isinstance(done, BaseException):
            raise done
        return done

    def _judge(self, observed: Observed) -> Judged:
        with self.phases.during(ph.JUDGE):
            operations = pair(self.history.ops)
            judged_parts = parts.of_workload(self.test, operations, observed)
        with self.phases.during(ph.DRAW):
            drawn = self._drawn(observed, operations, judged_parts)
        with self.phases.during(ph.WRITE_HISTORY):
            name = f"{self.folder.test_name}/{self.folder.stamp}"
            table = self.folder.operations_parquet
            problems = tried(table.name, lambda: write_operations(table, operations, run=name))
        return Judged(operations=operations, parts=judged_parts, drawn=drawn, problems=problems)

    def _drawn(
        self, observed: Observed, operations: Sequence[Operation], judged_parts: Sequence[Part]
    ) -> Mapping[str, tuple[str, str]] | None:
        """Draws the plots. Only parts of the workload have plots of their own."""
        record = RunRecord(
            test=self.info, duration_s=0.0, parts=judged_parts, faults=observed.faults, operations=operations
        )
        try:
            from results.page.report import plots_of

            return plots_of(record)
        except Exception:
            # The report tries again. If it fails too, the document names the problem.
            logger.exception("the plots could not be drawn")
            return None
