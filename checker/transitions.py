"""The table of a model that is written in Python: its states and operations as numbers, and each transition asked for once.

The search of the kernel asks such a table, and so does the search for places in the order that a system tells
(`checker.placement`).
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from checker.errors import ModelError
from checker.identity import identity
from checker.models.base import Inconsistent

if TYPE_CHECKING:
    from collections.abc import Hashable

    from checker.models.base import Call, Model, State

REFUSED: Final = -1


class Transitions:
    """What a model does in the states that were reached; state 0 is the initial one.

    Attributes:
        calls: By number: what the model sees of the operations that are alike.
    """

    def __init__(self, model: Model) -> None:
        self.calls: list[Call] = []
        self._model = model
        self._model_step = model.step
        self._states: list[State] = [model.initial]
        self._numbers: dict[Hashable, int] = {identity(model.initial): 0}
        self._after: list[dict[int, int]] = [{}]  # by state and call
        self._lock = Lock()  # two searches of one history may ask at once

    @property
    def states(self) -> int:
        """How many states were seen."""
        return len(self._states)

    @property
    def entries(self) -> int:
        """How many transitions are known."""
        return sum(map(len, self._after))

    def add(self, call: Call) -> int:
        """Returns the number of operations that are alike, and that have none yet."""
        self.calls.append(call)
        return len(self.calls) - 1

    def step(self, state: int, call: int) -> int:
        """Returns the number of the next state, or `REFUSED`. The model is asked once.

        Raises:
            ModelError: The model has states that are not hashable.
        """
        after = self._after[state]
        known = after.get(call)
        if known is None:
            with self._lock:
                known = after[call] = self._ask(state, call)
        return known

    def refusal(self, state: int, call: int) -> str | None:
        """Returns why the model refuses operations in a state; None if it does not."""
        after = self._model.step(self._states[state], self.calls[call])
        return after.message if isinstance(after, Inconsistent) else None

    def _ask(self, state: int, call: int) -> int:
        before = self._states[state]
        after = self._model_step(before, self.calls[call])
        if isinstance(after, Inconsistent):
            return REFUSED
        if after is before:
            return state
        try:
            number = self._numbers.setdefault(identity(after), len(self._states))
        except TypeError as error:
            raise ModelError(f"model {self._model.name}: expected hashable states, found {after!r}") from error
        if number == len(self._states):
            self._states.append(after)
            self._after.append({})
        return number
