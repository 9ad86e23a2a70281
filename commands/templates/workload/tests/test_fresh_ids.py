"""The workload against services in memory, in virtual time: a correct one is valid, and a wrong one is invalid."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from labrys_fresh_ids.workload import FreshIdsWorkload

from harness.combinators import limit
from harness.history import pair
from harness.op import Info, Ok
from harness.randomness import stream
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed

if TYPE_CHECKING:
    from harness.op import Invocation, Outcome
    from harness.testing import Respond
    from harness.verdict import Part


def run(respond: Respond, seed: int) -> Part:
    """Runs 300 operations against a service, and returns the part of the verdict."""
    workload = FreshIdsWorkload()
    ops = simulate(limit(300, workload.generator(seed=seed, streams=3)), respond=respond, seed=seed)
    (part,) = workload.check(pair(ops), Observed())
    return part


@pytest.mark.parametrize("seed", range(20))
def test_a_correct_service_is_valid(seed: int) -> None:
    """Lost answers do not matter."""
    numbers, draws = itertools.count(), stream(seed, "service")
    part = run(lambda *_: Info("lost") if draws.random() < 0.1 else Ok(next(numbers)), seed)
    assert part.verdict is Verdict.VALID


@pytest.mark.parametrize("seed", range(20))
def test_an_identifier_that_is_given_twice_is_invalid(seed: int) -> None:
    """The bug: sometimes the service answers the previous number."""
    numbers, draws = itertools.count(1), stream(seed, "service")

    def respond(process: int, invocation: Invocation) -> Outcome:
        number = next(numbers)
        return Ok(number - 1 if draws.random() < 0.05 else number)

    part = run(respond, seed)
    assert part.verdict is Verdict.INVALID
    counterexample = part.details["counterexample"]
    assert isinstance(counterexample, dict)
    assert counterexample["kind"] == "given-twice"


def test_a_service_that_never_answers_is_unknown() -> None:
    """Nothing was tested."""
    assert run(lambda *_: Info("lost"), 1).verdict is Verdict.UNKNOWN
