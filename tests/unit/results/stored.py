"""Writes synthetic runs into a store, like real runs.

As a script, it fills a store with runs to look at: `python -m tests.unit.results.stored STORE [OPERATIONS]`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.history import HistoryWriter
from harness.op import NEMESIS, OpType
from results.publish import announce, publish
from results.store.store import Run, Store
from tests.unit.results.synthetic import NODES, record

if TYPE_CHECKING:
    from results.record.record import RunRecord


def store_run(store: Store, made: RunRecord) -> Run:
    """Returns a finished run with this record."""
    run = store.create_run(made.test.name, made.test.started_utc)
    announce(run, made.test)
    write_history(run, made)
    write_logs(run)
    publish(run, made)
    store.finish(run)
    return run


def write_history(run: Run, made: RunRecord) -> None:
    """Writes the history of the record, with the nemesis's events."""
    events: list[tuple[int, int, dict[str, Any]]] = []
    for op in made.operations:
        common = {"process": op.process, "f": op.f, "key": op.key, "node": op.node, "scheduled_ns": op.scheduled_ns}
        events.append((op.start_ns, op.invoke_index, {**common, "op_type": OpType.INVOKE, "value": op.value}))
        if op.end_ns is not None and op.complete_index is not None:
            value = op.result if op.type is OpType.OK else op.value
            events.append(
                (op.end_ns, op.complete_index, {**common, "op_type": op.type, "value": value, "error": op.error})
            )
    for fault in made.faults:
        details = {"fault": fault.planned.id, "targets": list(fault.targets)}
        event: dict[str, Any] = {"op_type": OpType.INFO, "process": NEMESIS, "value": details}
        events.append((fault.start_ns, -1, {**event, "f": f"start-{fault.planned.kind}"}))
        events.append((fault.end_ns, -1, {**event, "f": f"stop-{fault.planned.kind}"}))
    writer = HistoryWriter(run.history_jsonl, {"seed": made.test.seed})
    for time_ns, _, fields in sorted(events, key=lambda event: event[:2]):
        writer.append(time_ns=time_ns, **fields)
    writer.close()


def suite_document(**more: Any) -> dict[str, Any]:
    """Returns the `suite.json` of a suite: one case passed, one failed, one runs, one waits."""
    passed = {
        "exit_code": 0, "reason": "It is linearizable.",
        "passed": True, "ended": "valid", "why": "It is linearizable.", "reproduce": "labrys test", "seconds": 61.5,
        "run": None, "left_out": ["clock-skew"], "failures": [], "fault_violations": None, "crossed": [], "behind": None,
    }  # fmt: skip
    failed = {
        **passed,
        "passed": False,
        "ended": "valid, crossed a threshold",
        "why": "crossed the threshold p99_ms < 9",
    }
    cases = more.get("cases", ["a", "b", "c", "d"])
    return {
        "format": "labrys-suite", "version": 1, "suite": "s", "seed": "19", "cases": cases, "selected": cases, "digests": {},
        "running": ["c"], "results": {"a": passed, "b": failed}, **more,
    }  # fmt: skip


def write_logs(run: Run) -> None:
    """Writes node logs, with lines that look like markup."""
    for node in NODES:
        folder = run.nodes_dir / node
        folder.mkdir(parents=True)
        lines = [
            f"2026-07-29 10:11:{i % 60:02d},{i % 1000:03d} INFO StateMaintainer - [{node}] "
            f"[TERM={i // 60}] </script><b>heartbeat {i}</b> & ok"
            for i in range(200)
        ]
        (folder / "server.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(root: Path, operations: int) -> None:
    """Fills a store."""
    store = Store(root)
    for stale in (False, True):
        made = record(seed=11 if stale else 7, operations=operations, stale=stale)
        run = store_run(store, made)
        sys.stdout.write(f"{run.report_html}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3000)
