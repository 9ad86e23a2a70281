"""The options of the command line about faults, and the plan they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.capabilities import NAMES, Capabilities
from harness.errors import InputError
from harness.node import Node
from nemesis.choices import make_plan, parse_options, refuse_impossible
from nemesis.planfile import to_json

if TYPE_CHECKING:
    from pathlib import Path

    from nemesis.planfile import Plan

NODES = ["n1", "n2", "n3", "n4", "n5"]


def make(**changes: Any) -> Plan:
    """Makes a plan from the options' defaults, with changes."""
    options = {
        "nemesis": "kill",
        "fault_on": (6.0, 15.0),
        "fault_off": (4.0, 12.0),
        "fault_options": "",
        "keep_majority": False,
        "in_turn": False,
        "plan_file": None,
    }
    return make_plan(options | changes, nodes=NODES, seed=1, time_limit_s=60)


def test_without_faults_the_plan_is_empty() -> None:
    """No `--nemesis`, no fault."""
    assert make(nemesis="").faults == ()


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
