"""The command line's options about faults, and the plan from them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.capabilities import CLOCK, NAMES, Capabilities
from harness.console.choices import LoadOptions
from harness.console.sources import Origin
from harness.errors import InputError
from harness.faults import RARE_MESSAGE, Trigger
from harness.node import Node
from nemesis.choices import FaultOptions, kinds_like, triggers_like
from nemesis.chosen import choose_all
from nemesis.faults.leadership import Transfer
from nemesis.kinds import all_kinds
from nemesis.parsing import options_of, request_of
from nemesis.plan import draw_plan
from nemesis.planfile import Plan, to_json
from nemesis.planning import follow_plan, given_plan, make_plan, refuse_impossible, supported
from nemesis.rhythm import Rhythm
from nemesis.targets import layout
from tests.fault_options import parsed

NODES = ["n1", "n2", "n3", "n4", "n5"]
WHERE = layout(NODES)


def poor(*available: str) -> dict[str, Capabilities]:
    """Returns five nodes with only these capabilities."""
    missing = {name: "not there" for name in NAMES if name not in available}
    return dict.fromkeys(NODES, Capabilities(available=frozenset(available), missing=missing))


def make(capabilities: dict[str, Capabilities] | None = None, **changes: Any) -> Plan:
    """Makes a plan from the options' defaults, with changes."""
    options = parsed(**{"nemesis": "kill"} | changes)
    given = given_plan(options, WHERE)
    return make_plan(options, where=WHERE, seed=1, time_limit_s=60, capabilities=capabilities, given=given)


@pytest.mark.parametrize("nothing", ["", "none"])
def test_without_faults_the_plan_is_empty(nothing: str) -> None:
    """Without `--nemesis`, or with `none`, there is no fault."""
    assert make(nemesis=nothing).faults == ()


def test_none_stands_alone() -> None:
    """`none` together with a kind is an error."""
    with pytest.raises(InputError, match="excludes all others"):
        make(nemesis="kill,none")


def test_a_wait_is_planned_in_addition_to_the_duration() -> None:
    """Each fault has the wait, and its whole planned time has room for it."""
    plan = make(nemesis="kill,pause", fault_on="8-9", fault_wait=2.5)
    assert {fault.wait_s for fault in plan.faults} == {2.5}
    assert all(7.999 <= fault.lasts_s <= 9.001 for fault in plan.faults)
    assert all(fault.trigger == Trigger(name=RARE_MESSAGE, limit_s=2.5) for fault in plan.faults)
    assert all(fault.trigger is None for fault in make(nemesis="kill").faults)
    with pytest.raises(
        InputError, match="5 s of quiet, up to 60 s of wait, at least 6 s on, and 10 s of quiet at the end need 81 s"
    ):
        make(fault_wait=60.0)


def test_a_kind_can_have_a_trigger_of_its_own() -> None:
    """`--fault-trigger` names triggers for all kinds and for single ones; a kind without one begins at its time."""
    plan = make(
        nemesis="kill:trigger,hammer-time", fault_trigger="kill=log-line:elected, suspend=new-leader", fault_wait=3.0
    )
    assert {(fault.kind, str(fault.trigger), fault.wait_s) for fault in plan.faults} == {
        ("kill", "log-line:elected", 3.0),
        ("pause", "new-leader", 3.0),
    }
    plan = make(nemesis="kill,pause", fault_trigger="kill=operation:write:5")
    assert {(fault.kind, str(fault.trigger), fault.wait_s) for fault in plan.faults} == {
        ("kill", "operation:write:5", 10.0),
        ("pause", "None", 0.0),
    }
    plan = make(nemesis="kill,pause", fault_trigger="new-leader,kill=term-change")
    assert {(fault.kind, str(fault.trigger)) for fault in plan.faults} == {
        ("kill", "term-change"),
        ("pause", "new-leader"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kill=new-leader,kill=term-change", "has two triggers for kill"),
        ("new-leader,term-change", "has two triggers for all kinds"),
        ("pause=new-leader", "there is a trigger for pause, but --nemesis does not have this kind"),
        ("new-lead", r"unknown trigger 'new-lead'\. Did you mean 'new-leader'"),
        ("rare-message", "needs a trigger that names a node, and rare-message names none"),
        ("", "needs a trigger that names a node, e.g. --fault-trigger new-leader"),
    ],
)
def test_wrong_triggers_are_refused(text: str, message: str) -> None:
    """The message has what is wrong, and a suggestion."""
    with pytest.raises(InputError, match=message):
        make(nemesis="kill:trigger", fault_trigger=text)


def test_triggers_complete() -> None:
    """The shell completes the names of triggers, also after a kind, with the colon of those that take a value."""
    assert "new-leader" in triggers_like("")
    assert "kill=log-line:" in triggers_like("kill=l")
    assert "new-leader,pause=term-change" in triggers_like("new-leader,pause=t")


def test_a_kind_can_have_a_rhythm_of_its_own() -> None:
    """A kind can have its own range, by its name or an alias."""
    plan = make(nemesis="kill,hammer-time", fault_on="8-9, pause=0.2-0.5", fault_off="suspend=1,5-6")
    lasted = {(fault.kind, round(fault.end_s - fault.start_s, 3)) for fault in plan.faults}
    assert all(8 <= seconds <= 9 for kind, seconds in lasted if kind == "kill")
    assert all(0.2 <= seconds <= 0.5 for kind, seconds in lasted if kind == "pause")
    assert {kind for kind, _ in lasted} == {"kill", "pause"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("soon", "such as 6-15"),
        ("6-15-20", "such as 6-15"),
        ("1,2", "two ranges for all kinds"),
        ("kill=1,kill=2", "two ranges for kill"),
        ("pause=1", "--nemesis does not have"),
        ("kil=1", "unknown fault"),
        ("9-2", "must lie within 0.01 to 604800 s and go up"),
        ("inf", "must lie within 0.01 to 604800 s"),
        ("1-nan", "must lie within 0.01 to 604800 s"),
        ("0.001", "must lie within 0.01 to 604800 s"),
    ],
)
def test_a_range_that_cannot_be_is_refused(text: str, message: str) -> None:
    """The error has the expected form of a range."""
    with pytest.raises(InputError, match=message):
        make(fault_on=text)


def test_a_plan_has_a_bounded_number_of_faults() -> None:
    """A duration that is too long is an error with a fix."""
    with pytest.raises(InputError, match="room for more than 100 faults; give less time"):
        draw_plan(
            choose_all(request_of("kill"), WHERE),
            WHERE,
            seed=1,
            time_limit_s=604_800,
            rhythms={"kill": Rhythm(on_s=(0.01, 0.01), off_s=(0.01, 0.01))},
            most=100,
        )


def test_options_reach_their_kind() -> None:
    """Values are JSON or texts, and aliases of kinds work."""
    plan = make(
        nemesis="packet-loss,leader-partition", fault_options="loss.probability=0.5, partition-leader.side=alone"
    )
    options = {fault.kind: fault.options for fault in plan.faults}
    assert options["packet-loss"]["probability"] == 0.5
    assert options["partition-leader"]["side"] == "alone"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("probability=0.5", "expected KIND.OPTION=VALUE"),
        ("packet-loss.probability", "expected KIND.OPTION=VALUE"),
        ("packet-loss.probability=0.5,packet-loss.probability=0.6", "given twice"),
    ],
)
def test_a_malformed_option_is_refused(text: str, message: str) -> None:
    """The error has the form and an example."""
    with pytest.raises(InputError, match=message):
        options_of(text)


def test_options_of_other_kinds_are_refused() -> None:
    """An option without effect is an error."""
    with pytest.raises(InputError, match="--nemesis does not have"):
        make(fault_options="packet-loss.probability=0.5")


def test_a_plan_file_is_carried_out_as_it_is(tmp_path: Path) -> None:
    """Errors in a plan file have the file's name."""
    path = tmp_path / "plan.json"
    drawn = make(nemesis="kill,bridge")
    path.write_text(to_json(drawn), encoding="utf-8")
    assert make(nemesis="", plan_file=path) == drawn
    path.write_text('{"faults": 3}', encoding="utf-8")
    with pytest.raises(InputError, match=r"plan\.json: faults: expected a list, found 3"):
        make(nemesis="", plan_file=path)


def test_a_fault_that_ends_after_the_run_is_refused(tmp_path: Path) -> None:
    """The error has both times and a fix; a fault may last until the end of the run."""
    path = tmp_path / "plan.json"
    fault = {"kind": "kill", "target": ["n1"], "start_s": 5, "end_s": 60}
    path.write_text(json.dumps({"faults": [fault]}))
    assert make(nemesis="", plan_file=path).faults[0].end_s == 60
    path.write_text(json.dumps({"faults": [fault | {"end_s": 70.5}]}))
    with pytest.raises(InputError, match=r"kill from 5 to 70.5 s ends after the run, .* 60 s\. .* --time-limit 71"):
        make(nemesis="", plan_file=path)


def follow(
    plan: Plan, given: dict[str, Origin], *, seed: int | None = None, time_limit: float = 60.0, **values: Any
) -> tuple[FaultOptions, LoadOptions, list[str]]:
    """Follows a plan. Returns the changed options and the lines."""
    faults = parsed(**{"plan_file": Path("p.json")} | values)
    return follow_plan(plan, faults, LoadOptions(seed=seed, time_limit=time_limit), given=given)


def test_a_plan_brings_its_seed_and_its_time_limit() -> None:
    """Without other values, those of the plan apply, without a line."""
    plan = Plan(layout=WHERE, seed=4, time_limit_s=20.0, faults=())
    _, load, lines = follow(plan, {})
    assert (load.seed, load.time_limit, lines) == (4, 20.0, [])
    _, load, lines = follow(replace(plan, seed=None, time_limit_s=None), {})
    assert (load.seed, load.time_limit, lines) == (None, 60.0, [])


def test_what_overrides_a_plan_is_told() -> None:
    """A value from any origin wins over the plan's, with a line; an equal value has no line."""
    plan = Plan(layout=WHERE, seed=4, time_limit_s=20.0, faults=())
    given = {
        "seed": Origin(words="--seed 5", typed=True),
        "time_limit": Origin(words="time-limit = 60 of labrys.toml", typed=False),
    }
    _, load, lines = follow(plan, given, seed=5)
    assert (load.seed, load.time_limit) == (5, 60.0)
    assert lines == ["--seed 5 overrides seed 4 of p.json", "time-limit = 60 of labrys.toml overrides 20 s of p.json"]
    assert follow(plan, given, seed=4, time_limit=20.0)[2] == []


def test_a_plan_excludes_options_that_draw_one() -> None:
    """On the command line, options for drawing are an error; from elsewhere, they have no effect, with a line."""
    plan = Plan(layout=WHERE, seed=4, time_limit_s=20.0, faults=())
    drawing: dict[str, Any] = {"nemesis": "kill", "fault_on": "3", "in_turn": True}
    for name, value in drawing.items():
        typed = {name: Origin(words=f"--{name}", typed=True), "plan_file": Origin(words="--plan p.json", typed=True)}
        with pytest.raises(InputError, match=f"--plan p.json excludes --{name}"):
            follow(plan, typed, **{name: value})
    elsewhere = {"nemesis": Origin(words="nemesis = kill of labrys.toml", typed=False)}
    faults, _, lines = follow(plan, elsewhere, nemesis="kill")
    assert not faults.nemesis
    assert lines == ["nemesis = kill of labrys.toml has no effect: the faults come from p.json"]


def test_the_plan_says_what_all_left_out() -> None:
    """The plan has the kinds that the nodes do not support, and those that did not fit, each with a reason."""
    plan = make(nemesis="all", capabilities=poor("root"))
    left = {item.kind: item.reason for item in plan.left_out}
    assert left["bridge"] == "n1, n2, n3, n4, n5 lack iptables (not there)"
    assert {fault.kind for fault in plan.faults} | left.keys() == {
        kind.name for kind in all_kinds().values() if kind.in_all
    }
    short = make_plan(parsed(nemesis=" all"), where=WHERE, seed=1, time_limit_s=25)
    told = {item.kind: item.reason for item in short.left_out}
    assert {fault.kind for fault in short.faults} | told.keys() == {k.name for k in all_kinds().values() if k.in_all}
    assert set(told.values()) == {"25 s are too short for it and the other faults"}
    assert make().left_out == ()


def test_what_is_asked_for_by_name_beside_all_is_not_left_out() -> None:
    """A kind that is requested by name must fit into the plan, or there is an error."""
    left = {item.kind for item in make(nemesis="all", fault_on="24").left_out}
    assert "pause" in left
    with pytest.raises(InputError, match="pause does not fit into 60 s with the other faults"):
        make(nemesis="all,pause", fault_on="24")


def test_all_on_nodes_that_can_take_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If `all` leaves out every kind, there is an error, since the run would have no fault."""
    monkeypatch.setattr(Transfer, "NEEDS", frozenset({"root"}))  # the only kind that needs no capability
    with pytest.raises(InputError, match="these nodes support none:\n  partition-random-node: n1, n2, n3, n4, n5 lack"):
        make(nemesis="all", capabilities=poor())


def test_impossible_faults_are_refused_before_anything_starts() -> None:
    """The error has every kind and node, and the missing capability."""
    nodes = [Node(name=name, address=f"10.0.0.{index}") for index, name in enumerate(NODES, 1)]
    can = {
        name: Capabilities(available=frozenset(NAMES) - {"netem", "switch"}, missing={"netem": "no such qdisc"})
        for name in NODES
    }
    refuse_impossible(make(), can, nodes)
    with pytest.raises(InputError, match="n5 lacks netem, which packet-delay needs: no such qdisc"):
        refuse_impossible(make(nemesis="packet-delay"), can, nodes)


def own_system(*, faketime: bool = True, tells_time: bool = True, runs_java: bool = True, leads: bool = True) -> Any:
    """Returns a system of real nodes; `leads`: it reports its leader, and moves the leadership."""
    front = SimpleNamespace(role="mine", reports=lambda: leads, moves_leadership=leads)
    return SimpleNamespace(
        name="mine", faketime=faketime, lacks={}, simulated=False, tells_time=lambda: tells_time,
        runs_java=lambda: runs_java, front=lambda: front,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("faketime", "tells", "provable", "reason"),
    [
        (True, True, True, None),
        (True, False, False, None),
        (True, False, True, "the processes of mine do not say their time"),
        (False, True, False, "the system mine does not run with it (`faketime = False`)"),
    ],
)
def test_a_system_can_refuse_libfaketime(reason: str | None, *, faketime: bool, tells: bool, provable: bool) -> None:
    """Then clock faults are refused by name on nodes that share this machine's clock, and `all` leaves them out."""
    mine = own_system(faketime=faketime, tells_time=tells)
    shared = {"n1": Capabilities(available=frozenset(NAMES) - {CLOCK}, missing={CLOCK: "one clock for all"})}
    can = supported(mine, shared, provable=provable)
    if reason is None:
        assert can == shared
        return
    nodes = [Node(name="n1", address="192.0.2.1")]
    with pytest.raises(InputError, match=re.escape(f"alternative faketime: {reason}")):
        refuse_impossible(make(nemesis="clock-skew"), can, nodes)
    own = supported(mine, {"n1": Capabilities(available=frozenset(NAMES))}, provable=provable)
    refuse_impossible(make(nemesis="clock-skew"), own, nodes)
    left = {item.kind: item.missing for item in make(dict(can), nemesis="all").left_out}
    assert reason in left["clock-skew"]
    assert reason in left["clock-strobe"]


def test_a_system_without_a_jvm_refuses_held_threads() -> None:
    """The error says what the system would have to name."""
    mine = own_system(runs_java=False)
    can = supported(mine, {"n1": Capabilities(available=frozenset(NAMES))}, provable=False)
    reason = "n1 lacks java, which thread-stall needs: no process of mine is a JVM whose packages are known"
    with pytest.raises(InputError, match=reason):
        refuse_impossible(make(nemesis="thread-stall"), can, [Node(name="n1", address="192.0.2.1")])


def test_all_leaves_out_what_needs_a_leader_that_no_node_reports() -> None:
    """A fault on the leader would never begin; a plan that names such a kind is not refused."""
    mine = own_system(leads=False)
    alone = {"n1": Capabilities(available=frozenset(NAMES))}
    able = supported(mine, alone, provable=True)
    left = {item.kind: item.missing for item in make(dict(able), nemesis="all").left_out}
    assert left == {
        "leadership-transfer": "leader (the mine of mine does not report its leader (`statuses`)) and "
        "transfer (the mine of mine does not move its leadership (`lead`))",
        "partition-leader": "leader (the mine of mine does not report its leader (`statuses`))",
    }
    assert supported(mine, alone, provable=False) == alone


def test_a_kind_to_leave_out_is_completed() -> None:
    """`-KIND` can follow a comma, and only with a kind that `all` includes."""
    likely = kinds_like("all,-clock")
    assert {"all,-clock-skew", "all,-clock-strobe", "all,kill"} <= set(likely)
    assert not {"all,-leader-kill", "-kill"} & {*likely, *kinds_like("-k")}
