"""Algorithms in turns: operations as objects and as arrays give the same results, within the limits."""

from __future__ import annotations

import time
from collections import Counter
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from checker.decide.coding import Arrays, KernelColumns
from checker.decide.deciding import Objects, decide_all
from checker.search.encode import encode
from checker.search.solving import Limits, solve
from tests.own_models import SilentMaxRegister, max_history, operation, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from checker.search.encode import Encoded

HISTORIES = 120
SAID = attrgetter("verdict", "op", "kind", "analyzer", "core")


def arrays(encoded: Encoded) -> Arrays:
    """Returns the same history as arrays."""
    codes = encoded.codes
    part = KernelColumns(
        np.array([code.f for code in codes], np.uint8),
        np.array([code.a for code in codes], np.int64),
        np.array([code.b for code in codes], np.int64),
        np.array(encoded.starts, np.int64),
        np.array(encoded.ends, np.int64),
    )
    return Arrays(encoded.coder.family, part, encoded.initial)


@pytest.mark.parametrize("name", ["register", "cas-register", "counter", "fifo-queue", "unordered-queue"])
def test_arrays_say_what_objects_say(draw: Callable[..., Any], name: str) -> None:
    """Verdict, operation, kind, analyzer and core are equal for each algorithm."""
    random = Random(f"arrays {name}")
    analyzers: Counter[str] = Counter()
    for _ in range(HISTORIES):
        model, operations = draw(name, random)
        encoded = encode(model, operations)
        if encoded.codes:
            [ours] = decide_all([Objects(model, operations, encoded)], Limits(threads=1))
            [theirs] = decide_all([arrays(encoded)], Limits(threads=1))
            assert SAID(ours) == SAID(theirs), operations
            analyzers[ours.analyzer] += 1
    assert analyzers["flow"]
    assert len(analyzers) > 2


def test_the_time_limit_is_for_all_turns_together() -> None:
    """A user's model whose search is stuck has its trial, its reason and the rest within the limit. Here it finds no reason."""
    model = SilentMaxRegister()
    operations = max_history(Random("limit"), 400, wrong=10_000)
    encoded = encode(model, operations)
    [outcome] = decide_all([Objects(model, operations, encoded)], Limits(time_limit_s=1e-9, threads=1))
    assert (outcome.verdict, outcome.cause) in {("unknown", "timeout"), ("valid", None)}


def test_a_limit_of_processor_time_ends_work_and_no_wait() -> None:
    """The kernel looks at the clock of the thread at the first step, and then after some thousand."""
    encoded = encode(waiting(SilentMaxRegister, 0.02), max_history(Random("waits"), 3_000, greatest=5, wrong=10_000))
    began_s = time.monotonic()
    [decided] = solve([encoded.problem], Limits(algorithm="search", processor_limit_s=0.1, threads=1))
    assert time.monotonic() - began_s > 0.1
    assert decided.steps > 2_048
    assert decided.verdict == "valid"
    [ended] = solve([encoded.problem], Limits(algorithm="search", processor_limit_s=1e-9, threads=1))
    assert (ended.verdict, ended.cause) == ("unknown", "timeout")


def test_one_failure_is_enough_where_that_is_asked_for() -> None:
    """The remaining history is cancelled, and not unsuited."""
    model = SilentMaxRegister()
    bad = encode(model, [operation(0, "max", 5, 0, 1, 5), operation(1, "read", None, 2, 3, 0)])
    good = encode(model, max_history(Random("fast"), 50, wrong=1_000))
    outcomes = decide_all([Objects(model, (), bad), Objects(model, (), good)], Limits(threads=1), fail_fast=True)
    assert outcomes[0].verdict == "invalid"
    assert outcomes[1].unsuited is None
