"""Faults of simulated runs on real nodes: long enough for a proof, without waits for messages, and in the same order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.faults import PlannedFault, Trigger
from harness.targets import ByLeader, Lead
from nemesis.plan import number
from nemesis.planfile import Plan
from nemesis.real_nodes import LEAST_S, changed_options, changed_plan
from nemesis.targets import layout
from tests.fault_options import parsed

MESSAGE = Trigger(name="rare-message", limit_s=0.5)
LEADER = Trigger(name="new-leader", limit_s=2.0)
TIMES = st.integers(min_value=0, max_value=4000).map(lambda ms: ms / 1000)


@st.composite
def _plans(draw: st.DrawFn) -> Plan:
    faults = []
    for _ in range(draw(st.integers(min_value=1, max_value=6))):
        start_s, trigger = draw(TIMES), draw(st.sampled_from([None, MESSAGE, LEADER]))
        wait_s = 0.0 if trigger is None else trigger.limit_s
        end_s = start_s + wait_s + draw(TIMES) + 0.001
        faults.append(
            PlannedFault(id=0, kind="kill", target=ByLeader(Lead.LEADER), start_s=start_s, end_s=end_s, trigger=trigger)
        )
    return Plan(layout=layout(("n1", "n2", "n3")), seed=1, time_limit_s=20.0, faults=number(faults))


@given(plan=_plans())
def test_each_fault_lasts_long_enough_and_none_overlaps_another_that_did_not(plan: Plan) -> None:
    """Faults keep their order and their distance at least, and the workload gets longer by the time that was added."""
    changed, sentences = changed_plan(plan)
    assert [fault.id for fault in changed.faults] == [fault.id for fault in plan.faults]
    for fault, old in zip(changed.faults, plan.faults, strict=True):
        assert fault.lasts_s >= max(LEAST_S, old.lasts_s) - 0.002
        assert fault.trigger == (None if old.trigger == MESSAGE else old.trigger)
        assert fault.start_s >= old.start_s
    for (before, first), (after, second) in pairwise(zip(plan.faults, changed.faults, strict=True)):
        if before.end_s <= after.start_s:
            assert second.start_s - first.end_s >= after.start_s - before.end_s - 0.002
    assert changed.time_limit_s is not None
    assert plan.time_limit_s is not None
    last_s = max(fault.end_s for fault in plan.faults)
    assert changed.time_limit_s - max(fault.end_s for fault in changed.faults) >= plan.time_limit_s - last_s - 0.002
    assert bool(sentences) == (changed != plan)


def test_a_plan_that_real_nodes_can_carry_out_stays_as_it_is() -> None:
    """Nothing changes without a reason."""
    fault = PlannedFault(id=0, kind="kill", target=ByLeader(Lead.LEADER), start_s=1.0, end_s=4.0, trigger=LEADER)
    plan = Plan(layout=layout(("n1",)), seed=1, time_limit_s=9.0, faults=(fault,))
    assert changed_plan(plan) == (plan, [])


def test_options_keep_the_triggers_of_real_nodes_and_their_limit() -> None:
    """Only the trigger that no real node has goes, and --fault-wait stays the limit of the other ones."""
    options = parsed(
        nemesis="kill,pause",
        fault_trigger="rare-message,pause=new-leader",
        fault_wait=2.0,
        fault_on="2-3,pause=0.2-1.5",
    )
    changes, sentences = changed_options(options)
    texts = {name: str(value) for name, value in changes.items()}
    assert texts == {"fault_trigger": "pause=new-leader", "fault_on": "2-3,pause=1-1.5"}
    assert sentences[0].startswith("It has no trigger rare-message: ")
    assert changed_options(parsed(nemesis="kill", fault_wait=1.0))[0] == {"fault_wait": 0.0}
    assert changed_options(parsed(nemesis="kill")) == ({}, [])


@pytest.mark.parametrize("nemesis", ["", "none"])
def test_a_run_without_faults_changes_nothing(nemesis: str) -> None:
    """A hunt without faults has a rhythm all the same, and nobody needs a sentence about it."""
    assert changed_options(parsed(nemesis=nemesis, fault_on="0.5-1", fault_wait=1.0)) == ({}, [])
