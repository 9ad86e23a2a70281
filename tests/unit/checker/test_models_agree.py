"""The kernel's models equal Python's, and every algorithm agrees with brute force, on random histories."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.models import Call, Inconsistent, Model, names
from checker.search import brute
from harness.verdict import Verdict
from tests.deciding import analysis

if TYPE_CHECKING:
    from collections.abc import Callable

HISTORIES = 150
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in names()),
    ("register", {"nil_read": "any"}),
    ("cas-register", {"failed_cas": "observe"}),
    ("cas-register", {"initial": 1, "nil_read": "any", "failed_cas": "observe"}),
    ("mutex", {"initial": True}),
    ("multi-register", {"initial": {"x": 0, "y": 1}, "nil_read": "any"}),
    ("set", {"initial": [0, 1]}),
    ("grow-set", {"initial": [0]}),
    ("counter", {"initial": 1}),
    ("fifo-queue", {"crashed_dequeue": "never"}),
    ("fifo-queue", {"initial": [1, 0]}),
    ("unordered-queue", {"crashed_dequeue": "never"}),
    ("unordered-queue", {"initial": [0, 0]}),
    ("list", {"initial": [0]}),
    ("kv", {"initial": "<0>"}),
]


@pytest.mark.parametrize("unique", [False, True], ids=["repeated", "unique"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[f"{n}{''.join(o)}" for n, o in OPTIONS])
def test_every_algorithm_says_what_the_brute_force_says(
    draw: Callable[..., Any], name: str, options: dict[str, Any], unique: bool
) -> None:
    """Independent code confirms the verdict, certificate and counterexample of each algorithm."""
    random = Random(f"{name}{options}{unique}")
    seen = set()
    for number in range(HISTORIES):
        model, operations = draw(name, random, unique=unique, ties=number % 3 == 0, options=options)
        truth = Verdict.VALID if brute.linearizable(model, operations) else Verdict.INVALID
        seen.add(truth)
        for algorithm in ("auto", "search", "linear", "wgl"):
            result = analysis(model, operations, algorithm=algorithm, certificate=True, counterexample=number % 10 == 0)
            if not operations:
                assert result.valid is Verdict.UNKNOWN
                continue
            assert result.valid is truth, f"{algorithm} ({result.analyzer}) says {result.valid}: {operations}"
            if truth is Verdict.VALID:
                assert result.certificate is not None, operations
            elif number % 10 == 0:
                assert result.op is not None
                assert result.explanation
                assert brute.linearizable(model, result.counterexample) is False, operations
    assert Verdict.VALID in seen
    assert name == "noop" or Verdict.INVALID in seen


class _Foreign(Model):
    """A built-in model that is hidden from the kernel."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.initial = inner.initial
        self.keeps_failed = inner.keeps_failed
        self.per_process = inner.per_process  # type: ignore[misc]  # like the inner model

    def step(self, state: Any, op: Call) -> Any:
        return self._inner.step(state, op)


@pytest.mark.parametrize("name", sorted(names()))
def test_a_model_in_python_decides_as_the_same_model_in_the_kernel(draw: Callable[..., Any], name: str) -> None:
    """A user's own model gives the same verdict and the same first failing operation."""
    random = Random(f"foreign {name}")
    for _ in range(HISTORIES):
        model, operations = draw(name, random)
        native = analysis(model, operations, algorithm="linear", counterexample=False)
        for algorithm in ("auto", "linear", "wgl"):
            foreign = analysis(_Foreign(model), operations, algorithm=algorithm, counterexample=False)
            assert (foreign.valid, foreign.op) == (native.valid, native.op), operations


def test_an_unordered_queue_loses_any_element_to_a_crashed_dequeue(draw: Callable[..., Any]) -> None:
    """A count of lost elements in the model allows the same histories as dequeues of every possible element."""
    random = Random("lost")
    for _ in range(HISTORIES * 4):
        model, operations = draw("unordered-queue", random)
        literal = brute.linearizable(_PowerSet(model.initial[0]), operations)
        assert brute.linearizable(model, operations) == literal, operations


class _PowerSet(Model):
    """The set of all possible contents of the queue."""

    def __init__(self, initial: tuple[Any, ...]) -> None:
        self.initial = frozenset({tuple(sorted(initial))})

    def step(self, state: frozenset[tuple[Any, ...]], op: Call) -> frozenset[tuple[Any, ...]] | Inconsistent:
        after = frozenset(bag for before in state for bag in self._bags(before, op))
        return after or Inconsistent("no bag allows it")

    @staticmethod
    def _bags(bag: tuple[Any, ...], op: Call) -> list[tuple[Any, ...]]:
        if op.f == "enqueue":
            return [tuple(sorted((*bag, op.argument)))]
        if op.ok and op.result is None:
            return [bag] if not bag else []
        places = [i for i, element in enumerate(bag) if not op.ok or element == op.result]
        return [(*bag[:i], *bag[i + 1 :]) for i in places]
