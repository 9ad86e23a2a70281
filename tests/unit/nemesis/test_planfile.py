"""Plans as JSON: writing, reading, and errors."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.faults import FaultRecord, PlannedFault, Trigger
from harness.targets import Named
from nemesis.chosen import choose_all
from nemesis.errors import PlanError
from nemesis.kinds import all_called, all_kinds
from nemesis.lacking import LeftOut
from nemesis.parsing import request_of
from nemesis.plan import draw_plan
from nemesis.planfile import Plan, by_name, from_json, to_json
from nemesis.rhythm import Rhythm
from nemesis.targets import LEADER, TRIGGER, layout
from nemesis.triggers import parse_trigger

NODES = ["n1", "n2", "n3", "n4", "n5"]
WHERE = layout(NODES)
EVERY = [
    called.name for called in all_called().values() if called.target is not None and called.name != "partition-fixed"
]

AT_TRIGGER = [kind.name for kind in all_kinds().values() if TRIGGER in kind.fault.TARGETS]
TRIGGERS = ("log-line:snapshot", "new-leader", "follower-behind:30", "ok-after-failure", "operation:write:9")


def drawn(kinds: list[str], seed: int, trigger: str = "") -> Plan:
    """Draws a plan for five nodes."""
    rhythm = Rhythm(trigger=parse_trigger(trigger, 4.0) if trigger else None)
    faults = draw_plan(
        choose_all(request_of(",".join(kinds)), WHERE), WHERE, seed=seed, time_limit_s=120, each_at_least_once=False,
        rhythms={kind.partition(":")[0]: rhythm for kind in kinds},
    )  # fmt: skip
    return Plan(layout=WHERE, seed=seed, time_limit_s=120.0, faults=faults)


def edited(**changes: object) -> str:
    """Returns a plan of one kill with changes to the fault."""
    fault = {"kind": "kill", "target": ["n1"], "start_s": 5, "end_s": 9} | changes
    return json.dumps({"faults": [{key: value for key, value in fault.items() if value is not ...}]})


LEFT = {"kind": "packet-delay", "nodes": ["n1"], "missing": "netem (no such qdisc)"}


def left(**changes: object) -> str:
    """Returns a plan that left out one kind, with changes to this entry."""
    return json.dumps(
        {"faults": [], "left_out": [{key: value for key, value in (LEFT | changes).items() if value is not ...}]}
    )


@given(
    st.sets(st.sampled_from(EVERY), min_size=1, max_size=4), st.integers(0, 2**63 - 1), st.sampled_from(["", *TRIGGERS])
)
def test_a_plan_comes_back_as_it_went(kinds: set[str], seed: int, trigger: str) -> None:
    """Writing and reading a drawn plan gives the same faults, and writing again the same bytes."""
    plan = drawn(sorted(kinds), seed, trigger)
    text = to_json(plan)
    back = from_json(text, where=WHERE, source="plan.json")
    assert to_json(back) == text
    assert [f.target for f in back.faults] == [f.target for f in plan.faults]
    assert [f.trigger for f in back.faults] == [f.trigger for f in plan.faults]
    assert {str(f.trigger) for f in plan.faults} <= {
        f"{trigger}:1" if trigger == "ok-after-failure" else trigger or "None"
    }


@given(st.sets(st.sampled_from(AT_TRIGGER), min_size=1), st.integers(0, 2**63 - 1), st.sampled_from(TRIGGERS))
def test_a_fault_at_the_node_of_its_trigger_comes_back(kinds: set[str], seed: int, trigger: str) -> None:
    """The target stays a word until the fault begins. A replay can name the node instead."""
    plan = drawn([f"{kind}:trigger" for kind in sorted(kinds)], seed, trigger)
    assert plan.faults
    assert {fault.target for fault in plan.faults} == {TRIGGER}
    text = to_json(plan)
    assert to_json(from_json(text, where=WHERE, source="plan.json")) == text
    record = FaultRecord(planned=plan.faults[0], targets=("n4",), start_ns=0, end_ns=1, proof=None)
    assert by_name(plan.faults, [record])[0] == replace(plan.faults[0], target=Named(("n4",)))


def test_a_trigger_changes_no_draw() -> None:
    """A kind has the same targets and durations with a trigger and without, as long as there is room."""
    for seed in range(20):
        plain, waits = drawn(["kill"], seed), drawn(["kill"], seed, "new-leader")
        assert [fault.target for fault in plain.faults][: len(waits.faults)] == [fault.target for fault in waits.faults]
        assert plain.faults[0].lasts_s == pytest.approx(waits.faults[0].lasts_s, abs=0.002)


def test_a_wait_comes_back() -> None:
    """A fault without one has no such key."""
    trigger = {"name": "rare-message", "limit_s": 1.5}
    plan = from_json(edited(trigger=trigger), where=WHERE, source="plan.json")
    assert [fault.trigger for fault in plan.faults] == [Trigger(name="rare-message", limit_s=1.5)]
    assert from_json(to_json(plan), where=WHERE, source="plan.json") == plan
    assert "trigger" not in to_json(from_json(edited(), where=WHERE, source="plan.json"))


def test_a_plan_of_another_version_is_refused() -> None:
    """A plan of version 2 has the order of its nodes elsewhere. The error has both versions."""
    old = json.dumps(json.loads(edited()) | {"format": "labrys-plan", "version": 2})
    with pytest.raises(
        PlanError, match=r"plan\.json: expected format 'labrys-plan' version 3, found 'labrys-plan' version 2"
    ):
        from_json(old, where=WHERE, source="plan.json")


def test_what_was_left_out_comes_back() -> None:
    """A plan has the kinds that were left out; without any, it has no such key."""
    plan = replace(drawn(["kill"], 4), left_out=(LeftOut(kind="crash", nodes=("n4",), missing="drop-caches (no)"),))
    text = to_json(plan)
    back = from_json(text, where=WHERE, source="plan.json")
    assert back.left_out == plan.left_out
    assert to_json(back) == text
    assert "left_out" not in to_json(drawn(["kill"], 4))


def test_a_plan_in_turn_comes_back() -> None:
    """A plan in turn has the key; other plans have no such key."""
    plan = replace(drawn(["kill"], 4), in_turn=True)
    text = to_json(plan)
    assert from_json(text, where=WHERE, source="plan.json").in_turn
    assert "in_turn" not in to_json(drawn(["kill"], 4))


def test_faults_in_turn_do_not_overlap() -> None:
    """A plan with the key and with overlapping faults contradicts itself."""
    faults = [{"kind": "kill", "target": ["n1"], "start_s": 5, "end_s": 9}]
    faults.append({"kind": "pause", "target": ["n2"], "start_s": 8, "end_s": 12})
    text = json.dumps({"in_turn": True, "faults": faults})
    with pytest.raises(PlanError, match="kill ends at 9 s and pause begins at 8 s, but the plan has in_turn"):
        from_json(text, where=WHERE, source="plan.json")
    assert len(from_json(text.replace("true", "false"), where=WHERE, source="plan.json").faults) == 2


def test_a_list_of_one_role_is_the_role() -> None:
    """A list with one spec is the spec, unless a node has this name."""
    assert from_json(edited(target=["leader"]), where=WHERE, source="p").faults[0].target == LEADER
    named = from_json(edited(target=["leader"]), where=layout(["leader", "n2"]), source="p").faults[0]
    assert named.target == Named(("leader",))


def test_what_the_command_prints_is_read_too() -> None:
    """The output of `labrys plan` has the plan and the reproduce line."""
    plan = drawn(["kill"], 4)
    printed = json.dumps({"reproduce": "labrys test", "plan": json.loads(to_json(plan))}, indent=2)
    assert from_json(printed, where=WHERE, source="plan.json") == plan


def test_faults_can_be_taken_out_by_hand() -> None:
    """Gaps in the ids are closed, in the order of start."""
    plan = drawn(["kill", "pause"], 4)
    document = json.loads(to_json(plan))
    del document["faults"][0]
    back = from_json(json.dumps(document), where=WHERE, source="plan.json")
    assert [fault.id for fault in back.faults] == list(range(len(plan.faults) - 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "expected an object"),
        ('{"faluts": []}', "unknown key 'faluts'. Did you mean 'faults'"),
        ("{}", "the member faults is missing"),
        ('{"faults": [], "version": 4}', "version 3, found 'labrys-plan' version 4"),
        ('{"faults": [], "version": [2]}', r"version 3, found 'labrys-plan' version \[2\]"),
        ('{"faults": [], "seed": "x"}', "seed: expected a whole number or null, found 'x'"),
        ('{"faults": [], "seed": -1}', "seed: expected a whole number of at least 0, found -1"),
        ('{"faults": [], "time_limit_s": 0}', "time_limit_s: expected a number of at least 1.0, found 0"),
        ('{"faults": [], "time_limit_s": 1' + "0" * 400 + "}", "time_limit_s: expected a number of 64 bits"),
        (
            '{"faults": [], "nodes": ["n1", "n2", "n3"]}',
            "for the nodes n1, n2, n3, and the cluster has n1, n2, n3, n4, n5",
        ),
        ('{"faults": [], "nodes": ["n2", "n1", "n3", "n4", "n5"]}', "in this order"),
        ('{"faults": [], "nodes": 5}', "nodes: expected a list or null, found 5"),
        ('{"faults": [], "left_out": {}}', "left_out: expected a list, found"),
        ('{"faults": [], "left_out": [3]}', r"left_out\[0\]: expected an object, found 3"),
        (left(kind="kil"), r"left_out\[0\]: unknown fault 'kil'. Did you mean 'kill'"),
        (left(kind=3), r"left_out\[0\].kind: expected a text, found 3"),
        (left(missing=None), "missing: expected a text, found None"),
        (left(nodes="n1"), "nodes: expected a list, found 'n1'"),
        (left(why="x"), "unknown key 'why'"),
        (left(nodes=...), r"the member left_out\[0\].nodes is missing"),
        ('{"faults": [], "left_out": [%s, %s]}' % ((json.dumps(LEFT),) * 2), "packet-delay was left out twice"),
        ('{"faults": {}}', "faults: expected a list, found"),
        ('{"faults": [3]}', r"faults\[0\]: expected an object"),
        (json.dumps({"faults": [], "in_turn": "yes"}), "in_turn: expected true or false, found 'yes'"),
        (edited(kind="kil"), r"faults\[0\]: unknown fault 'kil'. Did you mean 'kill'"),
        (edited(target="mnority"), "Did you mean 'minority'"),
        (edited(target="minority"), "aimed at nodes by name, at 'all', or at one of leader, .*, not at 'minority'"),
        (edited(target=["n9"]), "unknown target 'n9'"),
        (edited(target=[]), "names no node"),
        (edited(target=[["n1"]]), r"faults\[0\].target\[0\]: expected a text"),
        (edited(target=["leader", "n1"]), r'a list holds node names; write "target": "leader" alone'),
        (edited(target=["n1", "minority"]), r'a list holds node names; write "target": "minority"'),
        (edited(target=["minority"]), "aimed at nodes by name, at 'all', or at one of leader, .*, not at 'minority'"),
        (edited(target="leader+n1"), "'leader' stands alone"),
        (edited(start_s=9), "not after its start"),
        (edited(start_s=-1), r"faults\[0\].start_s: expected a number of at least 0.0, found -1"),
        (edited(end_s=1e400), "Infinity is not a JSON number"),
        (edited(end_s="9"), "end_s: expected a number, found '9'"),
        (edited(stop_s=10), "unknown key 'stop_s'"),
        (edited(end_s=...), r"the member faults\[0\].end_s is missing"),
        (
            edited(trigger={"name": "rare-message", "limit_s": 4}),
            "it waits for 4 s, which must be less than its 4 s in all",
        ),
        (
            edited(trigger={"name": "rare-message", "limit_s": -1}),
            "limit_s: expected a number of at least 0.001, found -1",
        ),
        (edited(trigger={"name": "rare-mesage", "limit_s": 1}), "trigger: unknown trigger 'rare-mesage'. Did you mean"),
        (edited(trigger={"name": "rare-message"}), r"the member faults\[0\].trigger.limit_s is missing"),
        (
            edited(target="trigger"),
            "kill at the target 'trigger' needs a trigger that names a node, e.g. --fault-trigger",
        ),
        (
            edited(target="trigger", trigger={"name": "rare-message", "limit_s": 1}),
            "needs a trigger that names a node, and rare-message names none. Triggers that do: log-line, new-leader,",
        ),
        (edited(target=["n1", "trigger"]), 'a list holds node names; write "target": "trigger" alone'),
        (edited(kind="file-bitflip", target="trigger"), "file-bitflip cannot be aimed at 'trigger'"),
        (edited(trigger="rare-message"), "trigger: expected an object or null, found 'rare-message'"),
        (
            edited(trigger={"name": "rare-message", "limit_s": 1, "parameters": {"node": "n1"}}),
            "the trigger rare-message has no option 'node'. It has none.",
        ),
        (edited(wait_s=1.5), "unknown key 'wait_s'"),
        (edited(options={"signal": 9}), "kill has no option 'signal'"),
        (edited(order=["n1"]), "its order must name every node once"),
        (edited(options={"order": ["n1"]}), "kill has no option 'order'"),
        (edited(options=[]), "options: expected an object, found"),
        (edited(kind="bridge", target=["n1", "n2"]), "all 5 nodes in an order"),
        (edited(kind="partition-leader", target="followers"), "cannot be aimed at 'followers'"),
        (
            edited(kind="partition-leader", target="leader", options={"side": "left"}),
            "one of alone, minority, majority",
        ),
        (edited(kind="partition-fixed", target="all"), "lacks the nodes to cut off"),
        (edited(kind="partition-halves", target=NODES), "needs nodes on both sides"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(text: str, message: str) -> None:
    """Each mistake is an error with its place, before any node is changed."""
    with pytest.raises(PlanError, match=message) as caught:
        from_json(text, where=WHERE, source="plan.json")
    assert str(caught.value).startswith("plan.json")


def test_two_faults_of_one_process_are_refused() -> None:
    """A kill and a pause of one node must not overlap, since they would heal each other."""
    kill = {"kind": "kill", "target": ["n1", "n2"], "start_s": 5, "end_s": 9}
    pause = {"kind": "hammer-time", "target": ["n2"], "start_s": 8, "end_s": 12}
    with pytest.raises(PlanError, match="both hold n2"):
        from_json(json.dumps({"faults": [pause, kill]}), where=WHERE, source="plan.json")


def test_a_fault_that_waits_for_a_start_may_follow_a_kill() -> None:
    """Until then, the kill may last; without that wait, both would hold the node."""
    kill = {"kind": "power-loss", "target": ["n1"], "start_s": 0, "end_s": 9}

    def plan(starts: int) -> str:
        trigger = {
            "name": "disk-step",
            "limit_s": 5,
            "parameters": {"n": 1, "on": "n1", **({"starts": starts} if starts else {})},
        }
        return json.dumps({"faults": [kill, {**kill, "end_s": 12, "trigger": trigger}]})

    assert len(from_json(plan(1), where=WHERE, source="plan.json").faults) == 2
    with pytest.raises(PlanError, match="both hold n1"):
        from_json(plan(0), where=WHERE, source="plan.json")


def test_fixed_partitions_take_components_or_a_grudge() -> None:
    """Components and a grudge are accepted; unknown nodes are not."""
    cut = {"kind": "partition-fixed", "target": "all", "start_s": 5, "end_s": 9}
    good: list[dict[str, object]] = [{"components": [["n1", "n2"], ["n3"]]}, {"grudge": {"n1": ["n2"]}}]
    for options in good:
        document = json.dumps({"faults": [cut | {"options": options}]})
        assert from_json(document, where=WHERE, source="p").faults[0].options == options
    bad: list[dict[str, object]] = [
        {"components": [["n1", "n9"]]},
        {"grudge": {"n9": ["n2"]}},
        {"grudge": {"n1": "n2"}},
    ]
    for options in bad:
        with pytest.raises(PlanError):
            from_json(json.dumps({"faults": [cut | {"options": options}]}), where=WHERE, source="p")


def test_roles_become_the_names_that_were_hit() -> None:
    """A replay by name affects the recorded nodes; a fault that never began keeps its target."""
    faults = drawn(["leader-kill"], 1).faults
    first = FaultRecord(planned=faults[0], targets=("n4",), start_ns=0, end_ns=1, proof=None)
    replayed = by_name(faults, [first])
    assert replayed[0].target == Named(("n4",))
    assert all(fault.target == LEADER for fault in replayed[1:])


def test_hostile_files_are_refused_quickly() -> None:
    """A file that is too deep or too large is an error."""
    for text in ("[" * 100_000, "x" * 10_000_001):
        with pytest.raises(PlanError):
            from_json(text, where=WHERE, source="plan.json")


def test_a_written_plan_is_readable_line_by_line() -> None:
    """Each fault has one line, for easy edits and diffs."""
    fault = PlannedFault(id=0, kind="kill", target=Named(("n1",)), start_s=5.0, end_s=9.0)
    text = to_json(Plan(layout=WHERE, seed=None, time_limit_s=None, faults=(fault,)))
    assert '    {"id": 0, "kind": "kill", "target": ["n1"], "start_s": 5.0, "end_s": 9.0}\n' in text
