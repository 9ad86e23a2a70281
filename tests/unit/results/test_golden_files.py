"""The files of a run keep their form, byte for byte.

`golden/` has run folders as this version writes them. `python -m tests.unit.results.test_golden_files` writes them again; a
change of a published file is a change of its version.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.faults import FaultRecord, Fired, PlannedFault, Proof, Trigger
from harness.node_clocks import Clocks, NodeClock
from harness.node_states import ClusterState, HeldEntry, NodeState
from harness.suites.expectation import Expectation, SuiteCase
from harness.suites.thresholds import read_threshold
from harness.switch import ConnectionNote, Happened
from harness.targets import ByLeader, Lead, Named
from harness.units import NS_PER_S as S
from harness.verdict import Part, Verdict
from harness.watch import Positions, Sighting
from results.publish import announce
from results.store.store import Run
from results.store.suites import read_suite
from results.stored.document import build
from results.stored.load import load_record
from results.stored.node_states import FILE, read_states, states_document
from tests.unit.results.stored import write_history
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from results.record.record import RunRecord

GOLDEN = Path(__file__).parent / "golden"
WRITTEN = ("valid", "stale", "everything", "nothing")
STATES = (
    ClusterState(time_ns=1_500_000_000, nodes=(NodeState(node="n1", process="dead"),)),
    ClusterState(
        time_ns=2_000_000_001,
        nodes=(
            NodeState(
                node="n1", process="running", role="leader", term=3, last=7, last_term=2, committed=6, value="166",
                entries=tuple(HeldEntry(index=index, term=2, text=f"write {index} on k1") for index in range(60)),
            ),
            NodeState(node="n2", process="paused", value="é\u2028"),
        ),
    ),
)  # fmt: skip


def everything(made: RunRecord) -> RunRecord:
    """Returns a record that has each member, also the rare ones."""
    waited = FaultRecord(
        planned=PlannedFault(
            id=len(made.faults),
            kind="kill",
            target=ByLeader(Lead.LEADER),
            start_s=50.0,
            end_s=56.5,
            trigger=Trigger(name="log-line", limit_s=2.5, parameters={"pattern": "elected"}),
            role="broker",
            order=("n2", "n1", "n3"),
            options={"odd": [1, None, 2.5]},
        ),
        targets=("n2",),
        start_ns=51 * S,
        end_ns=57 * S + 1,
        proof=Proof(effective=True, reason="n2: gone.", measured={"pid": 7, "late_s": float("inf")}),
        details={"pids": {"n2": [1, 2]}, "sorted": {"b", "a"}},
        fired=Fired(time_ns=51 * S - 5, what="after a line with elected", measured={"latency_s": 0.25}),
    )
    unfired = replace(
        waited,
        planned=replace(
            waited.planned,
            id=len(made.faults) + 1,
            target=Named(("n1", "n3")),
            trigger=Trigger(name="rare-message", limit_s=1.0),
        ),
        targets=(),
        start_ns=58 * S,
        end_ns=58 * S,
        proof=None,
        details={},
        fired=None,
        error="It never fired.",
    )
    claims = [
        Sighting(time_ns=S, node="n1", role="leader", term=9, leader="n1", until_ns=4 * S),
        Sighting(time_ns=2 * S, node="n4", role="leader", term=9, until_ns=None),
        Sighting(time_ns=3 * S, node="n2", role=None),
    ]
    return replace(
        made,
        test=replace(
            made.test,
            answers=("mismatch",),
            refusals=("not-leader",),
            log_texts=("elected", "TERM"),
            left_out={"packet-rate": "n1 lacks netem", "crash": "no room"},
            defaults={"file": "labrys.toml", "options": {"rate": 5}},
            thresholds=tuple(map(read_threshold, ("p99_ms < 0", "read.availability >= 0.1", "recovery_s < 100", "ok > 1"))),
            suite=SuiteCase(
                suite="s", case="c[nemesis=kill]#2", line="c[nemesis=kill]",
                expectation=Expectation(
                    verdict=Verdict.INVALID, during_fault=True, known_failures=frozenset({"b=unknown", "a=invalid"}),
                    parts=frozenset({"linearizable"}),
                ),
            ),
        ),
        parts=[
            *made.parts,
            Part(name="progress", verdict=Verdict.UNKNOWN, reason="A second one.", extra=True),
            Part(name="control-node", verdict=Verdict.UNKNOWN, reason="It was behind.", extra=True),
            Part(
                name="counted", verdict=Verdict.INVALID, reason="2 keys.",
                details={"violations": {"total": 2, "during_faults": 1, "after_faults": 1, "before_faults": 0}},
            ),
        ],
        faults=[*made.faults, waited, unfired],
        sightings=sorted([*made.sightings, *claims], key=lambda seen: seen.time_ns),
        other_sightings={"broker": claims, "broker of g1": claims[:1]},
        positions=Positions(time_ns=[0, S, 2 * S + 1], applied={"n1": [1, None, 3], "n2": [None, 2, 2]}),
        connections=[ConnectionNote(time_ns=S, source="n1", target="n2", what=Happened.STALLED, count=3)],
        clocks=Clocks(
            began_utc=datetime(2026, 7, 29, 10, 11, 15, 123456, tzinfo=UTC),
            nodes={"n1": NodeClock(offset_ns=-1_234_567, uncertain_ns=2_000_001, zone_s=-3600)},
            unknown={"n2": "n2: no answer within 5 s"},
        ),
        problems=[*made.problems, "a log is gone"],
    )  # fmt: skip


def records() -> dict[str, RunRecord]:
    """Returns the records whose folders `golden/` has."""
    valid = record(seed=7, operations=60)
    stale = record(seed=11, operations=150, stale=True)
    bare = replace(valid, parts=(), faults=(), operations=(), sightings=(), timings={}, phases=())
    return {"valid": valid, "stale": stale, "everything": everything(valid), "nothing": bare}


def write(made: RunRecord, path: Path) -> Run:
    """Writes the files of a run that hold data."""
    path.mkdir(parents=True)
    run = Run(path)
    announce(run, made.test)
    write_history(run, made)
    run.write_json(run.results_json, build(made))
    if made.other_sightings:
        run.write_json(path / FILE, states_document(STATES))
    return run


@pytest.mark.parametrize("name", WRITTEN)
def test_the_files_of_a_run_keep_their_bytes(name: str, tmp_path: Path) -> None:
    """The same record gives the same `test.json`, `history.jsonl`, `results.json` and `explain.json`."""
    run = write(records()[name], tmp_path / "run")
    files = sorted(path.name for path in run.path.iterdir())
    assert files == sorted(path.name for path in (GOLDEN / name).iterdir())
    for file in files:
        assert (run.path / file).read_text(encoding="utf-8") == (GOLDEN / name / file).read_text(encoding="utf-8"), file


@pytest.mark.parametrize("name", WRITTEN)
def test_a_stored_run_is_written_again_as_it_was(name: str, tmp_path: Path) -> None:
    """Its record is read from its folder, and gives the same files."""
    loaded = load_record(Run(GOLDEN / name))
    run = Run(tmp_path)
    announce(run, loaded.test)
    run.write_json(run.results_json, build(loaded))
    for file in ("test.json", "results.json"):
        assert (tmp_path / file).read_text(encoding="utf-8") == (GOLDEN / name / file).read_text(encoding="utf-8")


def test_the_states_of_nodes_come_back() -> None:
    """`explain.json` restores them; of a long log it has the last 50 entries."""
    bare, full = read_states(Run(GOLDEN / "everything"))
    assert bare == STATES[0]
    assert full.nodes[1] == STATES[1].nodes[1]
    assert full.nodes[0] == replace(STATES[1].nodes[0], entries=STATES[1].nodes[0].entries[-50:])


def test_suites_keep_their_meaning() -> None:
    """`suite.json` gives the same cases with the same states."""
    row = read_suite(GOLDEN / "suite", running=False)
    cases = [
        [
            case.name,
            str(case.state),
            case.ended,
            case.why,
            case.reproduce,
            list(case.left_out),
            case.seconds,
            list(case.run or ()),
        ]
        for case in row.cases
    ]
    row_document = {
        "name": row.name,
        "seed": row.seed,
        "standing": row.standing,
        "problem": row.problem,
        "cases": cases,
    }
    assert row_document == json.loads((GOLDEN / "suite" / "row.json").read_text(encoding="utf-8"))


def main() -> None:
    """Writes `golden/` again."""
    for name, made in records().items():
        shutil.rmtree(GOLDEN / name, ignore_errors=True)
        write(made, GOLDEN / name)


if __name__ == "__main__":
    main()
