"""Drawing plans: reproducibility, rhythms, and limits."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.targets import ByLeader, names_of
from nemesis import targets
from nemesis.chosen import choose_all
from nemesis.errors import PlanError
from nemesis.fault import Hit
from nemesis.grudges import has_quorum, union
from nemesis.kinds import all_called, find_kind
from nemesis.parsing import request_of
from nemesis.placement import LET_GO_S, RECOVERY_S, WORN_S
from nemesis.plan import draw_plan
from nemesis.rhythm import Rhythm

if TYPE_CHECKING:
    from harness.faults import PlannedFault
    from nemesis.fault import Impact

NODES = ["n1", "n2", "n3", "n4", "n5"]
WHERE = targets.layout(NODES)
THREE = ["partition-random-halves", "kill", "pause"]
EVERY = [
    called.name for called in all_called().values() if called.target is not None and called.name != "partition-fixed"
]


def plan(kinds: list[str], *, seed: int = 1, time_limit_s: float = 60.0, **more: Any) -> tuple[PlannedFault, ...]:
    """Draws a plan for five nodes."""
    return draw_plan(
        choose_all(request_of(",".join(kinds)), WHERE), WHERE, seed=seed, time_limit_s=time_limit_s, **more
    )


def possible(fault: PlannedFault) -> list[Impact]:
    """Returns the impact of a fault, for each possible leader."""
    cls = find_kind(fault.kind).fault
    leaders = NODES if isinstance(fault.target, ByLeader) else [None]
    hit = [targets.resolve(fault.target, NODES, order=fault.order, leader=leader) for leader in leaders]
    return [cls.impact(Hit(nodes=NODES, targets=names, order=fault.order or NODES), fault.options) for names in hit]


@given(st.integers(0, 2**63 - 1))
def test_the_same_seed_gives_the_same_plan(seed: int) -> None:
    """Two draws from one seed are equal, including times and targets."""
    assert plan(THREE, seed=seed) == plan(THREE, seed=seed)


def test_another_interpreter_draws_the_same_plan() -> None:
    """A plan does not depend on the hash seed of the process."""
    script = "\n".join(
        [
            "from nemesis.chosen import choose_all",
            "from nemesis.parsing import request_of",
            "from nemesis.plan import draw_plan",
            "from nemesis.targets import layout",
            f"nodes, kinds = layout({NODES!r}), {THREE!r}",
            "print(draw_plan(choose_all(request_of(','.join(kinds)), nodes), nodes, seed=7, time_limit_s=60))",
        ]
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout.strip() == str(plan(THREE, seed=7))


@given(st.integers(0, 10_000))
def test_another_kind_does_not_shift_a_plan(seed: int) -> None:
    """A kind draws the same faults with and without other kinds."""
    alone = [(f.target, f.start_s, f.end_s) for f in plan(["partition-random-halves"], seed=seed)]
    beside = [
        (f.target, f.start_s, f.end_s)
        for f in plan([*THREE, "bridge"], seed=seed)
        if f.kind == "partition-random-halves"
    ]
    assert alone == beside


@given(st.integers(0, 10_000), st.sampled_from(EVERY), st.floats(30, 300))
def test_faults_keep_the_rhythm(seed: int, kind: str, limit_s: float) -> None:
    """Start and end are quiet, durations and pauses are within their ranges, and there is at least one fault."""
    rhythm = Rhythm()
    faults = plan([kind], seed=seed, time_limit_s=limit_s)
    assert faults
    assert [fault.id for fault in faults] == list(range(len(faults)))
    slack_s = 0.002
    assert faults[0].start_s >= rhythm.quiet_s - slack_s
    assert max(fault.end_s for fault in faults) <= limit_s - rhythm.tail_s + slack_s
    assert all(rhythm.on_s[0] - slack_s <= fault.end_s - fault.start_s <= rhythm.on_s[1] + slack_s for fault in faults)
    pauses = [later.start_s - fault.end_s for fault, later in itertools.pairwise(faults)]
    assert all(rhythm.off_s[0] - slack_s <= pause <= rhythm.off_s[1] + slack_s for pause in pauses)


@given(st.integers(0, 10_000))
def test_faults_of_one_group_never_share_a_node(seed: int) -> None:
    """A paused process is not killed meanwhile, as far as the drawing knows the names."""
    faults = plan(["kill", "pause", "minor-kill", "crash:one"], seed=seed, time_limit_s=200, each_at_least_once=False)
    for one, other in itertools.combinations(faults, 2):
        if other.start_s < one.end_s + LET_GO_S - 0.002:
            assert not set(names_of(one.target)) & set(names_of(other.target))


PROCESS_KINDS = [
    "kill",
    "pause",
    "crash",
    "leader-kill",
    "kill:minority",
    "pause:one",
    "pause:majority",
    "leader-pause",
]


@settings(max_examples=150)
@given(
    st.integers(0, 2**63 - 1),
    st.integers(3, 9),
    st.lists(st.sampled_from(PROCESS_KINDS), min_size=2, max_size=3, unique=True),
    st.sampled_from([60.0, 120.0]),
)
@example(98, 3, ["leader-pause", "leader-kill", "kill:minority"], 120.0)  # the kill waits while the others take turns
@example(12, 7, ["leader-pause", "leader-kill", "pause"], 120.0)
def test_a_process_fault_always_finds_a_free_node(seed: int, count: int, kinds: list[str], limit_s: float) -> None:
    """For every possible leader, each fault has a target that no other fault affects at its start."""
    nodes = [f"n{i}" for i in range(1, count + 1)]
    where = targets.layout(nodes)
    faults = draw_plan(
        choose_all(request_of(",".join(kinds)), where),
        where,
        seed=seed,
        time_limit_s=limit_s,
        each_at_least_once=limit_s > 100,
    )
    for index, fault in enumerate(faults):
        on = [other for other in faults[:index] if fault.start_s < other.end_s + LET_GO_S - 0.002]
        named = {node for other in on for node in names_of(other.target)}
        for leading in itertools.permutations(nodes, sum(not names_of(other.target) for other in on)):
            held = named | set(leading)
            for leader in [node for node in nodes if node not in held] or nodes:
                hit = targets.resolve(fault.target, nodes, order=fault.order, leader=leader)
                assert set(hit) - held


@given(st.integers(0, 2**63 - 1), st.integers(3, 9))
def test_two_kinds_that_choose_leave_each_other_a_node(seed: int, count: int) -> None:
    """Each kill has a node that the pause before it did not affect, and vice versa, so a slow restart stops neither."""
    nodes = [f"n{i}" for i in range(1, count + 1)]
    kinds = ["partition-random-halves", "kill", "pause"]
    where = targets.layout(nodes)
    faults = draw_plan(choose_all(request_of(",".join(kinds)), where), where, seed=seed, time_limit_s=60)
    last: dict[str, PlannedFault] = {}
    for fault in faults:
        other = last.get({"kill": "pause", "pause": "kill"}.get(fault.kind, ""))
        worn = set() if other is None or fault.start_s >= other.end_s + WORN_S else set(names_of(other.target))
        assert set(names_of(fault.target)) - worn
        last[fault.kind] = fault
    assert set(last) == set(kinds)


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_a_majority_is_kept_whoever_leads(seed: int) -> None:
    """At every moment, for every leader of each fault, a node reaches a running majority."""
    kinds = ["partition-random-halves", "kill", "pause:one", "leader-kill", "bridge", "partition-leader"]
    faults = plan(kinds, seed=seed, time_limit_s=240, keep_majority=True, each_at_least_once=False)
    for fault in faults:
        on = [other for other in faults if other.start_s <= fault.start_s < other.end_s]
        for together in itertools.product(*(possible(other) for other in on)):
            down = frozenset().union(*(impact.down for impact in together))
            assert has_quorum(union(NODES, [impact.grudge for impact in together]), down)


def test_without_the_promise_a_majority_can_be_taken_away() -> None:
    """Without the option, a plan can take the majority away, so the property above is not trivial."""
    plans = [plan(THREE, seed=seed, time_limit_s=120) for seed in range(20)]
    assert any(len(names_of(fault.target)) > 2 for faults in plans for fault in faults if fault.kind == "kill")


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_a_majority_is_taken_away_whoever_leads(seed: int) -> None:
    """While a fault is on, no node reaches a running majority, for every leader of it."""
    kinds = ["kill", "pause:followers", "crash:majority"]
    faults = plan(kinds, seed=seed, time_limit_s=240, take_majority=True, each_at_least_once=False)
    assert faults
    for fault in faults:
        assert not any(has_quorum(impact.grudge, impact.down) for impact in possible(fault))


@pytest.mark.parametrize("kind", ["leader-kill", "bridge", "leadership-transfer", "pause:minority"])
def test_what_never_takes_the_majority_away_is_refused_where_it_must(kind: str) -> None:
    """The error has this reason; keeping and taking the majority exclude each other."""
    with pytest.raises(PlanError, match="never takes the majority away"):
        plan([kind], take_majority=True)
    with pytest.raises(PlanError, match="both kept and taken"):
        plan([kind], take_majority=True, keep_majority=True)


def test_a_healed_node_counts_as_down_until_it_can_have_caught_up() -> None:
    """With `keep_majority`, no node is killed while the node before it may still be catching up."""
    faults = plan(["kill:minority", "pause:minority"], seed=3, time_limit_s=300, keep_majority=True)
    for one, other in itertools.pairwise(faults):
        overlap = other.start_s < one.end_s + RECOVERY_S - 0.002
        assert not overlap or len({*names_of(one.target), *names_of(other.target)}) <= 2


@pytest.mark.parametrize("kind", ["kill:majority", "major-pause", "kill:all", "kill:followers"])
def test_what_always_takes_the_majority_away_is_refused_where_it_must_be_kept(kind: str) -> None:
    """There is an error, instead of a smaller fault."""
    with pytest.raises(PlanError, match="always takes the majority away"):
        plan([kind], keep_majority=True)


def test_halves_of_four_cannot_keep_a_majority() -> None:
    """Two halves of an even number leave no majority."""
    where = targets.layout(NODES[:4])
    with pytest.raises(PlanError, match="always takes the majority away"):
        draw_plan(choose_all(request_of("partition-halves"), where), where, seed=1, time_limit_s=60, keep_majority=True)


@given(st.integers(0, 10_000), st.lists(st.sampled_from(EVERY), min_size=1, max_size=8, unique=True))
def test_in_turn_each_kind_comes_once_and_alone(seed: int, kinds: list[str]) -> None:
    """The kinds come in the requested order, with the minimum pause; if they do not fit, there is an error."""
    faults = plan(kinds, seed=seed, time_limit_s=200, in_turn=True)
    assert [fault.kind for fault in faults] == [find_kind(name).name for name in kinds]
    for one, other in itertools.pairwise(faults):
        assert other.start_s == pytest.approx(one.end_s + Rhythm().off_s[0], abs=0.01)
    with pytest.raises(PlanError, match="does not fit into"):
        plan(kinds, seed=seed, time_limit_s=15 + 5.9 * len(kinds), in_turn=True)


def test_too_short_a_time_is_refused() -> None:
    """A run that is too short for its fault is an error."""
    with pytest.raises(PlanError, match=r"does not fit into 15 s.*need 21 s"):
        plan(["kill"], time_limit_s=15)


def test_a_kind_that_gets_no_turn_is_refused_or_left_out() -> None:
    """Two faults on all nodes do not fit into a short run."""
    with pytest.raises(PlanError, match="does not fit into"):
        plan(["kill:all", "pause:all"], time_limit_s=21)
    assert len(plan(["kill:all", "pause:all"], time_limit_s=21, each_at_least_once=False)) == 1


def test_roles_stay_roles_with_an_order() -> None:
    """A fault of the leader has no names, but an order, which determines the other nodes on its side."""
    fault = plan(["partition-leader"], seed=5)[0]
    assert fault.target == targets.LEADER
    assert sorted(fault.order) == NODES
    assert fault.options["side"] in {"alone", "minority", "majority"}


def test_ranges_are_options() -> None:
    """A rhythm around the election time-out is possible, also for single kinds."""
    short = Rhythm(on_s=(0.5, 1.0), off_s=(0.5, 1.0), quiet_s=1.0, tail_s=2.0)
    faults = plan(["kill", "pause"], rhythms={"pause": short})
    pauses = [fault for fault in faults if fault.kind == "pause"]
    assert len(pauses) > 10
    assert all(fault.end_s - fault.start_s <= 1.002 for fault in pauses)
    with pytest.raises(PlanError, match="range of on times"):
        Rhythm(on_s=(3.0, 1.0))
