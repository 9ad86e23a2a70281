"""Kinds by name: aliases, targets, suggestions, needs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities import NAMES, SIMULATED, Capabilities
from harness.faults import RARE_MESSAGE, PlannedFault, Trigger
from harness.node import Node
from harness.targets import AllNodes
from nemesis.chosen import choose, choose_all
from nemesis.errors import PlanError
from nemesis.kinds import Kind, Variant, all_called, all_kinds, find_called, find_kind, registry
from nemesis.lacking import LeftOut, left_out, missing_capabilities
from nemesis.parsing import asked_of, options_of, request_of
from nemesis.targets import layout

NODES = ["n1", "n2", "n3", "n4", "n5"]
WHERE = layout(NODES)
ABLE = Capabilities(available=frozenset(NAMES))


def without(*names: str) -> Capabilities:
    """Returns the capabilities of a node that lacks some."""
    return Capabilities(available=frozenset(NAMES) - set(names), missing=dict.fromkeys(names, "kernel says no"))


def fault(kind: str, **options: Any) -> PlannedFault:
    """Returns a plan's entry."""
    return PlannedFault(id=0, kind=kind, target=AllNodes(), start_s=0.0, end_s=9.0, options=options)


@pytest.mark.parametrize(
    ("alias", "kind", "target"),
    [
        ("hammer-time", "pause", "random"),
        ("random-kill", "kill", "random"),
        ("minor-suspend", "pause", "minority"),
        ("leader-suspend", "pause", "leader"),
        ("leader-partition", "partition-leader", "leader"),
        ("random-partition", "partition-random-halves", "random"),
        ("kill:n2+n1", "kill", "n2+n1"),
        ("pause:leader+minority", "pause", "leader+minority"),
        ("fixed-kill:n3", "kill", "n3"),
        ("minor-kill", "kill", "minority"),
        ("major-loss:leader", "packet-loss", "leader"),
    ],
)
def test_names_of_jepsen_and_openchaos_are_understood(alias: str, kind: str, target: str) -> None:
    """An alias means the kind and its target."""
    chosen = choose(asked_of(alias), WHERE)
    assert (chosen.kind.name, str(chosen.target)) == (kind, target)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hamer-time", "Did you mean 'hammer-time'"),
        ("parttition-halves", "Did you mean 'partition-halves'"),
        ("kill:minorty", "Did you mean 'minority'"),
        ("fixed-kill", "needs the names of its nodes, e.g. fixed-kill:n1"),
        ("partition-leader:minority", "cannot be aimed at 'minority'"),
        ("partition-one-way:all", "cannot be aimed at 'all'"),
        ("bridge:n1", "all 5 nodes in an order"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_suggestion(text: str, message: str) -> None:
    """An unknown kind, target or option is an error before a run."""
    with pytest.raises(PlanError, match=message):
        choose(asked_of(text), WHERE)


def test_no_alias_hides_a_kind() -> None:
    """Every name and alias is unique."""
    called: list[Kind | Variant] = []
    for kind in all_kinds().values():
        called += [kind, *kind.variants]
    assert not set(registry().aliases) & set(all_called())
    assert len(registry().aliases) == sum(len(kind.aliases) for kind in called)
    assert [kind.name for kind in called] == [*all_called()]
    assert all(find_called(name).name == name for name in all_called())
    assert all(find_kind(name).name == name for name in all_kinds())


def test_a_variant_is_its_kind_with_a_target() -> None:
    """The plan has the kind and the target. The name of the variant keeps its random stream, its options and its rhythm."""
    choices = choose_all(request_of("kill,leader-kill"), WHERE)
    assert [(choice.name, choice.kind.name, choice.label) for choice in choices] == [
        ("kill", "kill", "kill"),
        ("leader-kill", "kill", "leader-kill"),
    ]
    (heavy, light) = choose_all(
        request_of("packet-loss,minor-loss"), WHERE, options=options_of("minor-loss.probability=0.1")
    )
    assert (heavy.options, light.options) == ({"probability": 0.8}, {"probability": 0.1})
    assert find_called("fixed-delay").meaning == "packet-delay:NODE+..."


def test_kinds_are_described() -> None:
    """Every kind has a summary and a description of its proof."""
    for kind in all_kinds().values():
        assert kind.fault.SUMMARY.endswith(".")
        assert kind.fault.PROOF
        if kind.target is not None:
            kind.fault.check_target(kind.name, kind.target, NODES)


def test_lists_and_repetitions() -> None:
    """Commas and repeated options mean the same; the same fault twice is an error, except with another target."""
    names = [choice.label for choice in choose_all(request_of("kill, pause, kill:leader"), WHERE)]
    assert names == ["kill", "pause", "kill:leader"]
    with pytest.raises(PlanError, match="--nemesis has the fault 'kill' twice"):
        choose_all(request_of("kill,random-kill"), WHERE)


def test_all_means_all_that_these_nodes_can_have() -> None:
    """A kind that is left out for a missing capability has the reason."""
    able = dict.fromkeys(NODES, ABLE)
    every = {choice.kind.name for choice in choose_all(request_of("all"), WHERE, capabilities=able)}
    assert every == {kind.name for kind in all_kinds().values() if kind.in_all}
    poor = able | {"n4": without("drop-caches")}
    names = {choice.name for choice in choose_all(request_of("all, minor-kill"), WHERE, capabilities=poor)}
    assert every - names == {"crash"}
    assert "minor-kill" in names
    assert left_out(able) == ()
    assert left_out(poor) == (LeftOut(kind="crash", nodes=("n4",), missing="drop-caches (kernel says no)"),)
    assert left_out(poor)[0].reason == "n4 lacks drop-caches (kernel says no)"


def test_what_is_left_out_names_each_node_and_each_reason_once() -> None:
    """A common reason occurs once; different reasons have their nodes; the alternative capability is named too."""
    other = Capabilities(
        available=frozenset(NAMES) - {"netem", "switch"}, missing={"netem": "no tc", "switch": "no tun"}
    )
    reasons = {left.kind: left.reason for left in left_out({"n1": without("netem", "switch"), "n2": other, "n3": ABLE})}
    assert reasons["packet-delay"] == (
        "n1, n2 lack netem (n1: kernel says no; n2: no tc) and switch (n1: kernel says no; n2: no tun)"
    )
    assert left_out({"n1": without("netem")}) == ()
    clockless = without("clock", "faketime")
    (skew, strobe) = left_out({"n1": clockless, "n2": clockless})
    assert (skew.kind, strobe.kind) == ("clock-skew", "clock-strobe")
    assert skew.reason == "n1, n2 lack clock (kernel says no) and faketime (kernel says no)"
    assert left_out({"n1": without("clock")}) == ()


def test_options_belong_to_a_kind_that_is_asked_for() -> None:
    """Options of other kinds, unknown options and wrong values are errors."""
    chosen = choose_all(request_of("partition-leader"), WHERE, options=options_of("leader-partition.side=alone"))
    assert chosen[0].options == {"side": "alone"}
    with pytest.raises(PlanError, match="--nemesis does not have"):
        choose_all(request_of("kill"), WHERE, options=options_of("partition-leader.side=alone"))
    with pytest.raises(PlanError, match="takes one of alone, minority, majority, not 'left'"):
        options_of("partition-leader.side=left")


def test_missing_capabilities_name_the_node_and_the_thing() -> None:
    """There is one sentence for each kind and node; IPv6 nodes need ip6tables."""
    can = {"n1": ABLE, "n2": without("iptables"), "n3": without("ip6tables")}
    four = [Node(name=name, address=f"10.0.0.{index}") for index, name in enumerate(can)]
    six = [Node(name=name, address=f"fd00::{index}") for index, name in enumerate(can)]
    assert missing_capabilities([fault("kill"), fault("bridge")], can, four) == [
        "n2 lacks iptables, which bridge needs: kernel says no"
    ]
    assert missing_capabilities([fault("bridge")], can, six) == [
        "n3 lacks ip6tables, which bridge needs: kernel says no"
    ]


def test_a_fault_waits_for_a_message_only_on_simulated_nodes() -> None:
    """Real nodes do not show Labrys the types of their messages."""
    waits = replace(fault("kill"), trigger=Trigger(name=RARE_MESSAGE, limit_s=1.0))
    (line,) = missing_capabilities([waits, fault("kill")], {"n1": ABLE})
    assert line.startswith("n1 does not show Labrys its messages")
    assert missing_capabilities([waits], {"n1": Capabilities(available=frozenset({SIMULATED}))}) == []


def test_the_documentation_names_every_kind_alias_and_option() -> None:
    """docs/reference/faults.md has all kinds, and plans.md their options."""
    reference = Path(__file__).parents[3] / "docs" / "reference"
    text = "".join((reference / page).read_text(encoding="utf-8") for page in ("faults.md", "plans.md"))
    names = {
        *all_called(),
        *registry().aliases,
        *(option for kind in all_kinds().values() for option in kind.fault.OPTIONS),
    }
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_a_kind_can_be_left_out_of_all() -> None:
    """`all,-KIND` is `all` without this kind, by its name or an alias; a kind that is asked for beside it stays."""
    whole = [choice.label for choice in choose_all(request_of("all"), WHERE)]
    assert {"kill", "clock-skew"} <= set(whole)
    choices = choose_all(request_of("all,-clock-bump, -kill , kill:n1"), WHERE)
    assert [choice.label for choice in choices if choice.label != "kill:n1"] == [
        label for label in whole if label not in {"kill", "clock-skew"}
    ]
    assert {choice.label for choice in choices} - set(whole) == {"kill:n1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kill,-pause", "leaves a kind out of `all`, and `all` is not there; e.g. all,-pause"),
        ("all,-leader-kill", "leaves out leader-kill, which `all` does not include"),
        ("all,-clock-skwe", "unknown fault 'clock-skwe'. Did you mean 'clock-skew'"),
    ],
)
def test_a_kind_that_cannot_be_left_out_is_an_error(text: str, message: str) -> None:
    """A request that would leave out nothing is a mistake."""
    with pytest.raises(PlanError, match=re.escape(message)):
        choose_all(request_of(text), WHERE)


def test_a_kind_that_the_user_leaves_out_is_not_reported_as_left_out() -> None:
    """The report names the kinds that the nodes do not support, not those that nobody wanted."""
    unable = {"n1": Capabilities(available=frozenset(), missing={})}
    names = {item.kind for item in left_out(unable)}
    assert names - {item.kind for item in left_out(unable, request_of("all,-crash"))} == {"crash"}


@pytest.mark.parametrize(
    ("text", "count", "reason"),
    [
        ("packet-delay", 1, "packet-delay needs at least 2 nodes, and there is 1"),
        ("partition-random-node", 1, "partition-random-node needs at least 2 nodes, and there is 1"),
        ("partition-one-way", 1, "partition-one-way needs at least 2 nodes, and there is 1"),
        ("packet-loss:all", 1, "packet-loss needs at least 2 nodes, and there is 1"),
        ("leadership-transfer", 1, "leadership-transfer needs at least 2 nodes, and there is 1"),
        ("bridge", 2, "bridge needs at least 3 nodes, and there are 2"),
        ("partition-majorities-ring", 2, "partition-majorities-ring needs at least 3 nodes, and there are 2"),
        ("file-truncate", 1, "file-truncate needs at least 3 nodes, and there is 1"),
    ],
)
def test_a_kind_that_needs_more_nodes_is_refused_before_the_run(text: str, count: int, reason: str) -> None:
    """Its faults could have no effect, so the run would be unknown."""
    names = [f"n{number}" for number in range(1, count + 1)]
    with pytest.raises(PlanError, match=f"^{reason}$"):
        choose(asked_of(text), layout(names))
    assert choose(asked_of(text), layout([*names, "n8", "n9"])).kind.name == text.partition(":")[0]
    kinds = [choice.kind.name for choice in choose_all(request_of("all"), layout(names))]
    assert text.partition(":")[0] not in kinds
    assert "kill" in kinds
    left = {item.kind: item.reason for item in left_out(dict.fromkeys(names, ABLE), nodes=names)}
    assert left["bridge"] == f"it needs at least 3 nodes, and there {'is' if count == 1 else 'are'} {count}"
    assert "kill" not in left


def test_a_plan_for_one_node_has_no_fault_between_nodes() -> None:
    """`all` once was an error on one node."""
    kinds = {choice.kind.name for choice in choose_all(request_of("all"), layout(["n1"]))}
    assert {"kill", "pause", "power-loss"} <= kinds
    assert not {kind for kind in kinds if kind.startswith(("partition", "packet", "bridge"))}
