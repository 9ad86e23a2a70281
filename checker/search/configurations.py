"""The possible configurations of an object at a moment, and the impossible steps from there.

The kernel returns the operations that lead to a state. The model in Python replays them, so the results have the states of the
model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from checker.errors import ModelError
from checker.models.base import Inconsistent
from checker.models.blaming import place_of
from checker.result import Configuration, PathStep
from harness.console.plain import name as plain_name
from harness.console.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker._kernel import Config
    from checker.models.base import Model, State
    from harness.op import Operation, Value


MAX_PATHS: Final = 10
MAX_SHOWN: Final = 10
_MAX_STEPS: Final = 2000
_MAX_REPLAYED: Final = 100_000


class Known(Protocol):
    """Operations by their positions in the columns of a key."""

    def __getitem__(self, position: int, /) -> Operation: ...


def configurations(model: Model, known: Known, configs: Sequence[Config]) -> tuple[Configuration, ...]:
    """Returns the kernel's configurations with the states of the model; at most ten."""
    shown: list[Configuration] = []
    for config in configs[:MAX_SHOWN]:
        state = _replay(model, [known[i] for i in config.path])
        if isinstance(state, Inconsistent):
            continue
        shown.append(
            Configuration(
                model=described(model, state),
                last_op=None if config.last is None else known[config.last],
                pending=tuple(known[i] for i in config.pending),
                state=state,
            )
        )
    return tuple(shown)


def described(model: Model, state: State) -> Mapping[str, Value]:
    """Returns a state in the form for results.

    Raises:
        ModelError: The model's `describe` returns something else.
    """
    description = model.describe(state)
    if isinstance(description, Mapping) and all(isinstance(name, str) for name in description):
        return description
    shown = plain_name(one_line(repr(description)))
    raise ModelError(
        f"model {plain_name(model.name)}: {place_of(model.describe)}: expected a mapping with names as keys, found {shown}; "
        "correct the model"
    )


def _replay(model: Model, path: Sequence[Operation]) -> State | Inconsistent:
    state = model.initial
    if len(path) > _MAX_REPLAYED:
        return Inconsistent("the path is too long to be replayed")
    for op in path:
        state = model.step(state, model.call(op))
        if isinstance(state, Inconsistent):
            return state
    return state


def final_paths(model: Model, configs: Sequence[Configuration], op: Operation) -> tuple[tuple[PathStep, ...], ...]:
    """Returns at most ten orders of pending operations that end in an impossible step, as knossos does."""
    paths: list[tuple[PathStep, ...]] = []
    for config in configs:
        start = () if config.last_op is None else (PathStep(op=config.last_op, model=config.model),)
        pending = sorted(config.pending, key=lambda other: other is not op)
        for count, path in enumerate(_dead_ends(model, config.state, pending)):
            if count == _MAX_STEPS or len(paths) == MAX_PATHS:
                break
            paths.append((*start, *path))
    return tuple(paths)


def _dead_ends(model: Model, state: State, pending: Sequence[Operation]) -> Iterator[tuple[PathStep, ...]]:
    stack: list[tuple[State, tuple[Operation, ...], tuple[PathStep, ...]]] = [(state, tuple(pending), ())]
    steps = 0
    while stack and steps < _MAX_STEPS:
        before, left, path = stack.pop()
        for index, op in enumerate(left):
            steps += 1
            after = model.step(before, model.call(op))
            if isinstance(after, Inconsistent):
                yield (*path, PathStep(op=op, model=None, message=after.message))
            else:
                rest = (*left[:index], *left[index + 1 :])
                stack.append((after, rest, (*path, PathStep(op=op, model=described(model, after)))))
