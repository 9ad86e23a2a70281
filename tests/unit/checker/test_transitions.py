"""The table of a model in Python: equality of states, and the calls to the model."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import pytest

from checker._kernel import REFUSED, Transitions
from checker.errors import ModelError
from checker.identity import same
from checker.models import Call, Inconsistent, Model
from checker.models.registers import Register


class Pair(NamedTuple):
    """A state such as many models have."""

    first: int
    second: int


class Becomes(Model):
    """A model whose operations give the next state."""

    name = "becomes"
    initial = None
    asked = 0

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        self.asked += 1
        return Inconsistent(f"it is {state}") if op.f == "refuse" else op.argument


def call(argument: Any, f: str = "become") -> Call:
    """Returns the model's view of an operation."""
    return Call(f, argument, argument, None, ok=True)


STATES: list[Any] = [
    0,
    1,
    True,
    1.0,
    "1",
    b"1",
    None,
    (),
    (1, 2),
    [1, 2],
    Pair(1, 2),
    deque([1, 2]),
    (True, 2),
    (1.0, 2),
    ("bool", 1),
    ("list", 1, 2),
    ((1, 2), 3),
    ([1, 2], 3),
    [Pair(1, 2), 3],
    {1, 2},
    frozenset({2, 1}),
    {"a": 1},
    {"a": True},
    ({"a": 1}, [2]),
    [{"a": 1}, (2,)],
]


def test_states_are_the_same_if_their_identities_are() -> None:
    """Nested or not, of any types."""
    table = Transitions(Becomes())
    numbers = [table.step(0, table.add(call(state))) for state in STATES]
    for one, number in zip(STATES, numbers, strict=True):
        for other, second in zip(STATES, numbers, strict=True):
            assert (number == second) == same(one, other), (one, other)
    assert table.states == max(numbers) + 1


def test_deep_states_are_told_apart() -> None:
    """At any depth of their difference."""
    table = Transitions(Becomes())

    def nested(value: Any, depth: int) -> Any:
        for _ in range(depth):
            value = (value,)
        return value

    numbers = {
        table.step(0, table.add(call(nested(value, depth)))) for depth in (31, 32, 33, 50) for value in (1, True)
    }
    assert len(numbers) == 8


def test_a_transition_is_asked_for_once() -> None:
    """This includes refusals."""
    model = Becomes()
    table = Transitions(model)
    become, refuse = table.add(call(7)), table.add(call(None, "refuse"))
    for _ in range(3):
        assert table.step(0, become) == 1
        assert table.step(1, refuse) == REFUSED
    assert (model.asked, table.entries, table.states) == (2, 2, 2)
    assert table.refusal(1, refuse) == "it is 7"
    assert table.refusal(0, become) is None


def test_a_state_that_is_not_hashable_is_an_error() -> None:
    """The error names the model, its `step` with the line, and the state."""

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __repr__(self) -> str:
            return "what nobody can hash"

    table = Transitions(Becomes())
    with pytest.raises(
        ModelError, match=r"test_transitions.py:\d+\): expected hashable states, found what nobody can hash;"
    ):
        table.step(0, table.add(call(Unhashable())))


def test_an_error_of_the_model_passes() -> None:
    """Of any type."""

    class Broken(Register):
        def step(self, state: Any, op: Call) -> Any:
            raise TypeError("my own mistake")

    table = Transitions(Broken())
    with pytest.raises(TypeError, match="my own mistake"):
        table.step(0, table.add(call(1)))


@pytest.mark.parametrize("place", [(1, 0), (0, 1)])
def test_what_is_not_there_is_an_error(place: tuple[int, int]) -> None:
    """A state or a call."""
    table = Transitions(Becomes())
    table.add(call(1))
    with pytest.raises(IndexError):
        table.step(*place)
