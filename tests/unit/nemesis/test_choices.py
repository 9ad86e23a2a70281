"""The options of the command line about faults, and the plan they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from harness.capabilities import NAMES, Capabilities
from harness.errors import InputError
from harness.node import Node
from nemesis.choices import DRAWING, OPTIONS, make_plan, parse_options, refuse_impossible
from nemesis.planfile import to_json

if TYPE_CHECKING:
    from pathlib import Path

    from nemesis.planfile import Plan

NODES = ["n1", "n2", "n3", "n4", "n5"]


def make(**changes: Any) -> Plan:
    """Makes a plan from the options' defaults, with changes."""
    options = {
        "nemesis": "kill",
        "fault_on": "6-15",
        "fault_off": "4-12",
        "fault_options": "",
        "keep_majority": False,
        "take_majority": False,
        "in_turn": False,
        "plan_file": None,
    }
    return make_plan(options | changes, nodes=NODES, seed=1, time_limit_s=60)


@pytest.mark.parametrize("nothing", ["", "none"])
def test_without_faults_the_plan_is_empty(nothing: str) -> None:
    """No `--nemesis`, or `none`: no fault."""
    assert make(nemesis=nothing).faults == ()


def test_none_stands_alone() -> None:
    """`none` beside a kind is a contradiction."""
    with pytest.raises(InputError, match="excludes all others"):
        make(nemesis="kill,none")


def test_a_replay_leaves_out_all_that_draws() -> None:
    """Every option about faults draws a plan, so none of them goes with a plan that is given."""

    def command() -> None:
        """Takes the options."""

    for option in OPTIONS:
        command = option(command)
    assert {option.opts[0] for option in click.command()(command).params} == DRAWING


def test_a_kind_can_have_a_rhythm_of_its_own() -> None:
    """Ranges for one kind, by its name or an alias, beside those of all others."""
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
        ("pause=1", "not among the faults"),
        ("kil=1", "unknown fault"),
        ("9-2", "must go from a positive number up"),
    ],
)
def test_a_range_that_cannot_be_is_refused(text: str, message: str) -> None:
    """What a range lacks is said."""
    with pytest.raises(InputError, match=message):
        make(fault_on=text)


def test_options_reach_their_kind() -> None:
    """Numbers are numbers, words are words, aliases are understood."""
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
    """The form is named, with an example."""
    with pytest.raises(InputError, match=message):
        parse_options(text)


def test_options_of_other_kinds_are_refused() -> None:
    """An option that would do nothing is a mistake."""
    with pytest.raises(InputError, match="not among the faults"):
        make(fault_options="packet-loss.probability=0.5")


def test_a_plan_file_is_carried_out_as_it_is(tmp_path: Path) -> None:
    """It excludes choosing kinds; its mistakes are named with the file."""
    path = tmp_path / "plan.json"
    drawn = make(nemesis="kill,bridge")
    path.write_text(to_json(drawn), encoding="utf-8")
    assert make(nemesis="", plan_file=path) == drawn
    with pytest.raises(InputError, match="--plan excludes --nemesis"):
        make(plan_file=path)
    path.write_text('{"faults": 3}', encoding="utf-8")
    with pytest.raises(InputError, match=r"plan\.json: faults must be a list"):
        make(nemesis="", plan_file=path)


def test_impossible_faults_are_refused_before_anything_starts() -> None:
    """Every kind and node is named, with what the node lacks."""
    nodes = [Node(name=name, address=f"10.0.0.{index}") for index, name in enumerate(NODES, 1)]
    can = {
        name: Capabilities(available=frozenset(NAMES) - {"netem"}, missing={"netem": "no such qdisc"}) for name in NODES
    }
    refuse_impossible(make(), can, nodes)
    with pytest.raises(InputError, match="packet-delay needs netem on every node, and n5 has not: no such qdisc"):
        refuse_impossible(make(nemesis="packet-delay"), can, nodes)
