"""A counter: add without an answer, fetch-and-add with the count before as its answer, read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from checker.errors import ModelError, Unsuited
from checker.models.base import Call, Code, Inconsistent, NativeModel, Numbers
from checker.models.opcodes import FETCH_ADD, INCREMENT, READ_COUNT
from checker.words import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.models.base import State
    from checker.models.rows import Rows
    from harness.op import Value

_LIMIT = 2**62
_ADDS = frozenset({"add", "increment", "inc"})
_FETCHES = frozenset({"fetch-add", "fetch-and-add", "faa"})


class Counter(NativeModel):
    """`add` (also `increment`, `inc`) has an amount, 1 if it is nil; `fetch-add` returns the count before; `read` the count."""

    name: ClassVar[str] = "counter"
    family: ClassVar[str] = "counter"
    numbers_values: ClassVar[bool] = False

    def __init__(self, initial: Value = 0) -> None:
        """Makes the model.

        Args:
            initial: The initial count; nil is 0.
        """
        self.initial = self._integer(initial if initial is not None else 0)

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f == "read":
            if not op.ok or self._integer(op.result) == state:
                return state
            return Inconsistent(f"can't read {value_text(op.result)} from counter {value_text(state)}")
        amount = self._amount(op)
        if op.f in _FETCHES and op.ok and self._integer(op.result) != state:
            return Inconsistent(f"can't fetch {value_text(op.result)} from counter {value_text(state)}")
        return state + amount

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"value": state}

    def initial_code(self, numbers: Numbers) -> list[int]:  # noqa: ARG002 - numbers are themselves
        """See `NativeModel`."""
        return [self.initial]

    def code(self, op: Call, numbers: Numbers) -> Code | None:  # noqa: ARG002 - numbers are themselves
        """See `NativeModel`."""
        if op.f == "read":
            return Code(READ_COUNT, self._integer(op.result)) if op.ok else None
        amount = self._amount(op)
        if op.f in _FETCHES and op.ok:
            return Code(FETCH_ADD, amount, self._integer(op.result))
        return Code(INCREMENT, amount)

    def code_rows(self, f: str, rows: Rows) -> None:
        """See `NativeModel`."""
        if f == "read":
            rows.put(rows.ok, READ_COUNT, rows.integers(rows.result, rows.ok))
            return
        if f not in _ADDS and f not in _FETCHES:
            raise Unsuited
        rows.put(rows.possible, INCREMENT, rows.integers(rows.argument, rows.possible, absent=1))
        if f in _FETCHES:
            amounts = rows.integers(rows.argument, rows.ok, absent=1)
            rows.put(rows.ok, FETCH_ADD, amounts, rows.integers(rows.result, rows.ok))

    def _amount(self, op: Call) -> int:
        if op.f not in _ADDS and op.f not in _FETCHES:
            raise ModelError(f"model {self.name}: expected add, fetch-add or read, found {value_text(op.f)}")
        return 1 if op.argument is None else self._integer(op.argument)

    def _integer(self, value: Value) -> int:
        if type(value) is not int or not -_LIMIT < value < _LIMIT:
            raise ModelError(f"model {self.name}: expected an integer below 2^62, found {value_text(value)}")
        return value
