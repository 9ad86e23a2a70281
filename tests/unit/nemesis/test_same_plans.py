"""The same seeds give the same plans, also after a change of the code that draws them.

`tests/data/plans-of-seeds.json` has a digest of the plans of many seeds for each request of kinds. A change of a digest means
that recorded seeds and reproduce lines no longer give their runs.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.targets import to_json
from nemesis.chosen import choose_all
from nemesis.errors import PlanError
from nemesis.parsing import request_of
from nemesis.plan import draw_plan
from nemesis.rhythm import Rhythm
from nemesis.targets import layout
from nemesis.triggers import parse_trigger

if TYPE_CHECKING:
    from harness.faults import PlannedFault

DIGESTS = json.loads((Path(__file__).parents[2] / "data" / "plans-of-seeds.json").read_text(encoding="utf-8"))
NODES = ("n1", "n2", "n3", "n4", "n5")
ROLES = {"controller": ("n1", "n2", "n3"), "broker": ("n2", "n3", "n4", "n5"), "namesrv": ("n1",)}
PARTS = 6  # of the requests, so that one that takes long is seen


def written(fault: PlannedFault) -> list[Any]:
    """Returns a fault as the digests count it."""
    trigger = None if fault.trigger is None else fault.trigger.to_json()
    order = list(fault.order) or None
    target = to_json(fault.target)
    return [fault.kind, target, fault.start_s, fault.end_s, trigger, fault.role, order, dict(fault.options)]


def digest(case: dict[str, Any]) -> str:
    """Returns the digest of the plans of a request."""
    digest = hashlib.sha256()
    where = layout(NODES, ROLES if case.get("at_roles") else None)
    trigger = parse_trigger(case["trigger"], 4.0) if "trigger" in case else None
    rules = {name: case.get(name, False) for name in ("in_turn", "keep_majority", "take_majority")}
    for seed in range(case["seeds"]):
        try:
            choices = choose_all(request_of(case["kinds"]), where)
            plan = draw_plan(
                choices, where, seed=seed, time_limit_s=case.get("time_limit_s", 120.0), **rules,
                rhythms={choice.name: Rhythm(trigger=trigger) for choice in choices},
            )  # fmt: skip
            drawn: Any = [written(fault) for fault in plan]
        except PlanError as error:
            drawn = str(error)
        digest.update(json.dumps(drawn, sort_keys=True).encode())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_seed_gives_the_plan_that_it_always_gave(part: int) -> None:
    """Each kind with each target, several kinds together, roles, triggers, and the rules about majorities and turns."""
    names = list(DIGESTS)[part::PARTS]
    assert {name: digest(DIGESTS[name]) for name in names} == {name: DIGESTS[name]["digest"] for name in names}
