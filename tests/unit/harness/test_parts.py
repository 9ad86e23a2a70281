"""The parts of a verdict claim only recorded facts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness import parts, reached, states
from harness.console import own
from harness.errors import InputError
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.node import Node
from harness.op import FINAL_PHASE, Operation, OpType
from harness.recovery import Recovery
from harness.replicas import Difference, Replicas
from harness.run import RunResult
from harness.targets import AllNodes
from harness.verdict import CONTROL_NODE, Part, Verdict, worst
from harness.watch import Sighting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def operation(**changes: Any) -> Operation:
    """Returns an ok read from 1 ns to 2 ns, with changes."""
    values: dict[str, Any] = {
        "process": 0,
        "f": "read",
        "value": None,
        "result": 1,
        "type": OpType.OK,
        "start_ns": 1,
        "end_ns": 2,
        "invoke_index": 0,
        "complete_index": 1,
    }
    return Operation(**(values | changes))


def fault(
    kind: str, *, effective: bool | None, start_ns: int = 10, end_ns: int = 20, error: str | None = None
) -> FaultRecord:
    """Returns the record of a planned fault, with its proof."""
    return FaultRecord(
        planned=PlannedFault(id=0, kind=kind, target=AllNodes(), start_s=0.0, end_s=1.0),
        targets=("n1",),
        start_ns=start_ns,
        end_ns=end_ns,
        proof=None if effective is None else Proof(effective=effective, reason="12 packets were dropped"),
        error=error,
    )


def effective_of(faults: list[FaultRecord]) -> Part:
    """Returns the part of faults that all began."""
    return reached.faults_effective(faults, [fault.planned for fault in faults])


def test_a_plan_without_faults_is_valid() -> None:
    """There is no fault to prove."""
    assert reached.faults_effective([], []).verdict is Verdict.VALID


@pytest.mark.parametrize("effective", [False, None])
def test_a_kind_without_a_proven_effect_makes_the_run_unknown(effective: bool | None) -> None:
    """One such kind is enough."""
    part = effective_of([fault("kill", effective=True), fault("pause", effective=effective, error="no such pid")])

    assert part.verdict is Verdict.UNKNOWN
    assert "pause" in part.reason
    assert "no such pid" in part.reason
    assert part.details == {"kill": {"planned": 1, "effective": 1}, "pause": {"planned": 1, "effective": 0}}


def test_one_effective_fault_of_each_kind_is_enough() -> None:
    """A second fault of the kind without a proof is only in the details."""
    part = effective_of([fault("kill", effective=True), fault("kill", effective=False)])

    assert part.verdict is Verdict.VALID
    assert part.details == {"kill": {"planned": 2, "effective": 1}}


def test_each_role_of_a_kind_needs_a_proven_effect() -> None:
    """A kill of the brokers does not prove one of the controllers."""
    kills = [
        replace(record, planned=replace(record.planned, role=role))
        for role, record in {
            "broker": fault("kill", effective=True),
            "controller": fault("kill", effective=False),
        }.items()
    ]
    part = effective_of(kills)
    assert part.verdict is Verdict.UNKNOWN
    assert part.reason == "No kill:controller has a proven effect: 12 packets were dropped"
    assert part.details == {
        "kill:broker": {"planned": 1, "effective": 1},
        "kill:controller": {"planned": 1, "effective": 0},
    }


def test_a_planned_fault_that_never_began_makes_the_run_unknown() -> None:
    """The run ended before the fault began."""
    kill, pause = fault("kill", effective=True), fault("pause", effective=None)
    for begun in ([], [kill]):
        part = reached.faults_effective(begun, [kill.planned, pause.planned])
        assert part.verdict is Verdict.UNKNOWN
        assert part.reason.endswith("pause has a proven effect: it never began") or not begun
        assert part.details["pause"] == {"planned": 1, "effective": 0}


@pytest.mark.parametrize(("end_s", "late"), [(22.3, "kill ended 14.3 s later than planned"), (9.0, None)])
def test_a_fault_that_never_began_names_the_one_that_ended_late(end_s: float, late: str | None) -> None:
    """Faults that go in turn wait for each other. The reason names the last one, if it ended after the next one was due."""
    killed = PlannedFault(id=0, kind="kill", target=AllNodes(), start_s=3.0, end_s=8.0)
    cut = [
        PlannedFault(id=i, kind="bridge", target=AllNodes(), start_s=11.0 + 9 * i, end_s=16.0 + 9 * i) for i in (0, 1)
    ]
    record = replace(fault("kill", effective=True, end_ns=round(end_s * 1e9)), planned=killed)
    part = reached.faults_effective([record], [killed, *cut])
    expected = f"; {late}, so a longer --time-limit may help" if late else ""
    assert part.reason == f"No bridge has a proven effect: it never began{expected}"


@pytest.mark.parametrize(
    ("operations", "word"),
    [
        ([], "No operation succeeded"),
        ([operation(type=OpType.INFO, start_ns=12)], "No operation succeeded"),
        ([operation(start_ns=5), operation(start_ns=25)], "while a fault was on"),
        ([operation(start_ns=5), operation(start_ns=15)], "after the last fault"),
    ],
)
def test_a_run_without_progress_is_unknown(operations: list[Operation], word: str) -> None:
    """No operation succeeded at all, during the faults, or after them."""
    part = reached.progress(operations, [fault("kill", effective=True)], None)

    assert part.verdict is Verdict.UNKNOWN
    assert word in part.reason


def test_answers_during_and_after_faults_are_progress() -> None:
    """An operation counts for a fault if it was invoked while the fault was on."""
    part = reached.progress([operation(start_ns=15), operation(start_ns=20)], [fault("kill", effective=True)], None)

    assert part.verdict is Verdict.VALID
    assert part.details == {"ok": 2, "ok_during_faults": 1, "ok_after_faults": 1}


@pytest.mark.parametrize(("restarted", "verdict"), [(True, Verdict.UNKNOWN), (False, Verdict.VALID)])
def test_final_reads_after_a_restart_are_no_progress(restarted: bool, verdict: Verdict) -> None:
    """After a restart of all nodes, answers do not show that the system survived its faults."""
    operations = [operation(start_ns=15), operation(start_ns=25, phase=FINAL_PHASE)]
    recovery = Recovery(seconds=31.0, restarted=restarted, first_error=None, error=None, quorum=2, nodes=3)
    assert reached.progress(operations, [fault("kill", effective=True)], recovery).verdict is verdict


def test_recovery_only_by_restart_is_a_finding() -> None:
    """A system that works again only after a restart is invalid."""
    alone = Recovery(seconds=1.0, restarted=False, first_error=None, error=None, quorum=2, nodes=3)
    restarted = Recovery(seconds=40.0, restarted=True, first_error="n2 has no leader", error=None, quorum=2, nodes=3)
    never = Recovery(
        seconds=80.0, restarted=True, first_error="n2 has no leader", error="n2 has no leader", quorum=2, nodes=3
    )

    assert reached.recovered(alone).verdict is Verdict.VALID
    assert reached.recovered(restarted).verdict is Verdict.INVALID
    assert reached.recovered(never).verdict is Verdict.INVALID
    assert reached.recovered(None).verdict is Verdict.UNKNOWN


def test_replicas_are_compared_only_at_one_index() -> None:
    """Different states at the same index are invalid. If some nodes are at another index, equal states are unknown."""
    differing = [Difference(applied_index=7, key="k", values={"n1": 1}, lacking=["n2"])]
    equal = Replicas(applied={"n1": 7, "n2": 7}, compared={7: ["n1", "n2"]}, keys=3)
    behind = Replicas(applied={"n1": 7, "n2": 7, "n3": 5, "n4": None}, compared={7: ["n1", "n2"]}, keys=3)
    differ = replace(behind, differing=differing, differing_keys=1)
    alone = Replicas(applied={"n1": 7, "n2": None}, compared={}, seconds=20.0)

    assert states.replicas_equal(equal).verdict is Verdict.VALID
    assert states.replicas_equal(equal).reason == "2 replicas have the same 3 keys at applied index 7."
    assert states.replicas_equal(behind).verdict is Verdict.UNKNOWN
    assert "Not compared with them: n3 (at index 5), n4 (no answer)." in states.replicas_equal(behind).reason
    assert states.replicas_equal(differ).verdict is Verdict.INVALID
    assert "in 1 key; k at index 7: n1 has 1, n2 lacks it." in states.replicas_equal(differ).reason
    assert "n3 (at index 5)" in states.replicas_equal(differ).reason
    assert states.replicas_equal(alone).verdict is Verdict.UNKNOWN
    assert "n1 (at index 7), n2 (no answer)" in states.replicas_equal(alone).reason
    assert states.replicas_equal(None).verdict is Verdict.UNKNOWN


def test_an_unhandled_exception_makes_the_errors_unknown() -> None:
    """It may hide any error."""
    typed = operation(type=OpType.FAIL, error="not-leader: n2 leads")
    untyped = operation(type=OpType.INFO, error="exception: KeyError: 'x'")

    assert parts.client_errors([typed]).verdict is Verdict.VALID
    assert parts.client_errors([typed]).details["codes"] == {"not-leader": 1}
    assert parts.client_errors([typed, untyped]).verdict is Verdict.UNKNOWN


def test_a_fatal_line_is_found_with_its_place(tmp_path: Path) -> None:
    """The reason names node, file, line number and text."""
    log = tmp_path / "node.log"
    log.write_bytes(b"fine\n\xff\xfe not text\nBOOM: torn entry\n")

    part = parts.log_patterns({"n3": [log]}, ["BOOM", "panic"], ["n3"])

    assert part.verdict is Verdict.INVALID
    assert "node.log:3 of n3: BOOM: torn entry" in part.reason
    assert parts.log_patterns({"n3": [log]}, ["panic"], ["n3"]).verdict is Verdict.VALID
    assert parts.log_patterns({}, ["panic"], ["n3"]).verdict is Verdict.UNKNOWN
    lost = parts.log_patterns({"n3": [log], "n2": []}, ["panic"], ["n1", "n2", "n3"])
    assert lost.verdict is Verdict.UNKNOWN
    assert "No log file was found on n2. The logs of n1 could not be collected." in lost.reason


def test_a_run_that_broke_off_is_unknown() -> None:
    """An interruption or an error makes it unknown."""
    base: dict[str, Any] = {"interrupted": False, "error": None, "seconds": 7, "planned_s": 60, "left_out": {}}
    assert parts.completed(**base).verdict is Verdict.VALID
    assert parts.completed(**base | {"interrupted": True}).verdict is Verdict.UNKNOWN
    assert parts.completed(**base | {"error": "disk full"}).verdict is Verdict.UNKNOWN


class Modest:
    """A cluster, system, workload and test in one, with few parts of a verdict."""

    name = role = "modest"
    nodes = (Node(name="n1", address="192.0.2.1"), Node(name="n2", address="192.0.2.2"))
    plan = ()
    time_limit_s = 5.0
    one_leader_per_term = ""
    on_damage = None
    damaging = ()
    raft_invariants = ""
    model = None

    def __init__(self, *, dumps: bool, patterns: Sequence[str], final_reads: bool) -> None:
        self.cluster = self.system = self.workload = self
        self.dumps_replicas = dumps
        self.patterns = patterns
        self.final_reads = final_reads

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the patterns."""
        return self.patterns

    def own_parts(self) -> Sequence[Part]:
        """Returns none of its own."""
        return ()

    def front(self) -> Any:
        """Returns itself as the service of the clients."""
        return self

    def services(self) -> Sequence[Any]:
        """Returns itself as the only service."""
        return (self,)

    def quorum(self) -> int:
        """Returns all its nodes."""
        return len(self.nodes)

    def check(self, operations: Any, observed: Any) -> list[Part]:
        """Returns no parts."""
        return []


def test_a_part_that_a_test_cannot_have_is_left_out_and_named() -> None:
    """The part `completed` has each of them with the reason."""
    modest: Any = Modest(dumps=False, patterns=(), final_reads=False)
    by_name = {part.name: part for part in parts.of_run(modest, RunResult(), [operation()])}

    assert not {"replicas-equal", "log-patterns", "final-reads"} & set(by_name)
    assert by_name["completed"].details["left_out"] == {
        "final-reads": "the test does not ask for them",
        "replicas-equal": "modest does not dump its replicas",
        "one-leader-per-term": "modest does not promise it",
        "raft-invariants": "modest does not promise it",
        "log-patterns": "modest defines no fatal log lines",
    }
    assert "replicas-equal (modest does not dump its replicas)" in by_name["completed"].reason


def test_virtual_time_has_no_part_of_the_control_node() -> None:
    """Nothing was measured, so nothing says that the control node kept up."""
    simulated: Any = Modest(dumps=False, patterns=(), final_reads=False)
    simulated.world = SimpleNamespace(real_time=False)
    by_name = {part.name: part for part in parts.of_run(simulated, RunResult(), [operation()])}
    assert CONTROL_NODE not in by_name
    assert "virtual time" in by_name["completed"].details["left_out"][CONTROL_NODE]


def test_a_service_on_one_node_leaves_the_comparison_out() -> None:
    """A comparison needs two nodes that run the service."""
    lonely: Any = Modest(dumps=True, patterns=(), final_reads=True)
    lonely.nodes = lonely.nodes[:1]
    by_name = {part.name: part for part in parts.of_run(lonely, RunResult(), [operation()])}
    assert by_name["completed"].details["left_out"]["replicas-equal"] == "there is one replica only"


@pytest.mark.parametrize(("method", "part"), [("own_parts", "own-parts"), ("fatal_log_patterns", "log-patterns")])
@pytest.mark.parametrize("error", ["SystemExit(0)", "ValueError('boom')", "asyncio.CancelledError()"])
def test_a_system_whose_code_fails_after_the_run_costs_one_part(
    tmp_path: Path, method: str, part: str, error: str
) -> None:
    """The run keeps its verdict, which is unknown, and the part has the function, the file and the line."""
    file = tmp_path / "fails.py"
    file.write_text(f"import asyncio\n\nclass Fails:\n    def {method}(self):\n        raise {error}\n")
    fails = own.module_of(file).Fails

    class Failing(fails, Modest):  # type: ignore[misc, valid-type]  # made in the test
        """A system whose code fails."""

    failing: Any = Failing(dumps=False, patterns=(), final_reads=False)
    by_name = {own_part.name: own_part for own_part in parts.of_run(failing, RunResult(), [operation()])}
    assert by_name[part].verdict is Verdict.UNKNOWN
    assert f"{method} ({file}:5) failed: {error.partition('(')[0].removeprefix('asyncio.')}" in by_name[part].reason
    assert "completed" in by_name


def test_an_answer_that_cannot_be_judged_leaves_the_other_parts() -> None:
    """The workload's part is unknown with the reason."""

    class Strict(Modest):
        """A workload that cannot judge the operations."""

        def check(self, operations: Any, observed: Any) -> list[Part]:
            """Raises."""
            raise InputError("event 7: expected an offset")

    strict: Any = Strict(dumps=False, patterns=(), final_reads=False)
    judged = parts.of_run(strict, RunResult(), [operation()])
    assert judged[0].name == "modest"
    assert judged[0].verdict is Verdict.UNKNOWN
    assert judged[0].reason == "The operations could not be judged: event 7: expected an offset"
    assert "completed" in {part.name for part in judged}


def test_a_part_that_a_test_should_have_is_never_left_out() -> None:
    """A run without records has all its parts, and those that need records are unknown."""
    modest: Any = Modest(dumps=True, patterns=("panic",), final_reads=True)
    verdicts = {part.name: part.verdict for part in parts.of_run(modest, RunResult(), [])}

    unknown = {"replicas-equal", "recovered", "progress", "log-patterns"}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.UNKNOWN} == unknown


def test_invalid_beats_unknown_beats_valid() -> None:
    """The worst part decides, and no part at all is unknown."""
    assert worst([Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID]) is Verdict.INVALID
    assert worst([Verdict.VALID, Verdict.UNKNOWN]) is Verdict.UNKNOWN
    assert worst([]) is Verdict.UNKNOWN


LEADS = [
    Sighting(time_ns=1, node="n1", role="leader", term=4, until_ns=9),
    Sighting(time_ns=3, node="n2", role="follower", term=4, leader="n1"),
]


def test_two_leaders_in_a_term_make_a_run_invalid() -> None:
    """The sentence has both nodes, the term, and the promise of the system."""
    part = states.one_leader_per_term(
        [*LEADS, Sighting(time_ns=5, node="n5", role="leader", term=4)], "Raft promises it."
    )
    assert part.verdict is Verdict.INVALID
    assert part.reason.startswith("2 nodes reported that they led in term 4: n1 ")
    assert part.reason.endswith("Raft promises it.")
    assert part.details["rivals"] == [{"term": 4, "nodes": ["n1", "n5"]}]
    assert part.decides


def test_a_service_beside_that_tells_no_terms_is_left_out() -> None:
    """E.g. a group without terms. With terms, it has a part of its own."""
    modest: Any = Modest(dumps=False, patterns=(), final_reads=False)
    modest.one_leader_per_term = "P."
    [front] = [service.role for service in modest.system.services()]
    for term, expected in ((None, []), (4, [f"one-leader-per-term ({front} east)"])):
        seen = [Sighting(time_ns=1, node="n1", role="leader", term=term)]
        all_parts = parts.of_run(modest, RunResult(sightings=[*LEADS], other_sightings={f"{front} east": seen}), [])
        assert [part.name for part in all_parts if part.name.startswith("one-leader-per-term (")] == expected
        [completed] = [part for part in all_parts if part.name == "completed"]
        assert (f"no {front} east told a term" in str(completed.details)) is (term is None)


def test_an_observer_names_the_leader_of_a_term() -> None:
    """Two names for one term make a run invalid, whichever observers said them. A follower's view does not count."""
    seen = [
        Sighting(time_ns=1, node="n1", role="observer", term=4, leader="n4"),
        Sighting(time_ns=3, node="n2", role="observer", term=5, leader="n5"),
        Sighting(time_ns=4, node="n2", role="observer", term=6, leader=None),
        Sighting(time_ns=5, node="n3", role="follower", term=4, leader="n6"),
    ]
    part = states.one_leader_per_term(seen, "P.", "controller brokers")
    assert (part.verdict, part.details["terms"]) == (Verdict.VALID, 2)
    part = states.one_leader_per_term([*seen, replace(seen[1], term=4)], "P.", "controller brokers")
    assert part.verdict is Verdict.INVALID
    assert part.reason.startswith("2 nodes were reported to lead in term 4: n4 in the poll at 0.000 s, n5 ")
    assert part.details["rivals"] == [{"term": 4, "nodes": ["n4", "n5"]}]


def test_one_leader_in_a_term_is_valid_and_no_leader_is_unknown() -> None:
    """Without a report of a leader with a term, nothing was tested. This does not make the run unknown."""
    assert (
        states.one_leader_per_term(LEADS, "P.").reason
        == "No two nodes led in one term by the reports; 1 term had a leader."
    )
    for seen in ([], LEADS[1:], [replace(LEADS[0], term=None)]):
        part = states.one_leader_per_term(seen, "P.")
        assert part.verdict is Verdict.UNKNOWN
        assert not part.decides


@pytest.mark.parametrize(("promise", "expected"), [("", []), ("It promises so.", ["one-leader-per-term"])])
def test_only_a_system_that_promises_one_leader_is_held_to_it(promise: str, expected: list[str]) -> None:
    """Another system may report role and term of two moments."""
    modest: Any = Modest(dumps=False, patterns=(), final_reads=False)
    modest.one_leader_per_term = promise
    all_parts = parts.of_run(modest, RunResult(sightings=[*LEADS]), [])
    assert [part.name for part in all_parts if part.name == "one-leader-per-term"] == expected
