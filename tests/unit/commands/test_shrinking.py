"""A run is made smaller step by step, and never into one that does not find the same."""

from __future__ import annotations

from dataclasses import replace

from commands.shrinking import LEAST_FAULT_S, Candidate, shrink, steps
from harness.faults import PlannedFault


def fault(place: int, kind: str, *targets: str) -> PlannedFault:
    """Returns a fault of four seconds that begins after five times its place."""
    return PlannedFault(id=place, kind=kind, target=targets, start_s=5.0 * place + 1, end_s=5.0 * place + 5)


WHOLE = Candidate(
    faults=(fault(0, "kill", "n1", "n2"), fault(1, "pause", "n3"), fault(2, "partition-random-halves", "n1", "n2")),
    time_limit_s=30.0,
    rate=40.0,
)


def test_only_what_matters_is_left() -> None:
    """Where a pause of n3 alone brings the finding, it is all that is left, as short as can be, in a short run."""
    best = shrink(WHOLE, lambda each: any(fault.kind == "pause" for fault in each.faults), enough=lambda: False)
    (left,) = best.faults
    assert (left.kind, left.target, left.id) == ("pause", ("n3",), 0)
    assert left.end_s - left.start_s < 2 * LEAST_FAULT_S
    assert best.time_limit_s < 12
    assert best.rate is not None
    assert best.rate < 1


def test_targets_are_left_out_one_by_one() -> None:
    """Where a kill of n2 is needed, n1 is left alone."""

    def needs_n2(each: Candidate) -> bool:
        return any(fault.kind == "kill" and "n2" in fault.target for fault in each.faults)

    (left,) = shrink(WHOLE, needs_n2, enough=lambda: False).faults
    assert left.target == ("n2",)


def test_what_never_finds_it_stays_as_it_was() -> None:
    """If no smaller run has the finding, each step was tried once, and the run is left alone."""
    tried: list[Candidate] = []

    def never(each: Candidate) -> bool:
        tried.append(each)
        return False

    assert shrink(WHOLE, never, enough=lambda: False) == WHOLE
    assert len(tried) == len({repr(each) for each in tried}) == len({repr(each) for each in steps(WHOLE)})


def test_a_budget_ends_the_search() -> None:
    """What was found until then is kept."""
    assert shrink(WHOLE, lambda _: True, enough=lambda: True) == WHOLE


def test_steps_stay_within_the_run() -> None:
    """No step lets a fault outlast its run, takes all targets, or makes a fault without time; ids are dense."""
    for each in (*steps(WHOLE), *steps(replace(WHOLE, rate=None))):
        assert [fault.id for fault in each.faults] == list(range(len(each.faults)))
        assert all(fault.target and fault.start_s < fault.end_s <= each.time_limit_s for fault in each.faults)
