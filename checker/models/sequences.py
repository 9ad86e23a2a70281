"""Lists and strings that grow at their end: append, put, read all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from checker.errors import ModelError
from checker.identity import same
from checker.models.base import Call, Code, Inconsistent, NativeModel, Numbers
from checker.models.opcodes import APPEND, PUT, READ_LIST
from checker.words import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.models.base import State
    from harness.op import Value


class ListModel(NativeModel):
    """`append` has an element; `read` returns the whole list."""

    name: ClassVar[str] = "list"
    family: ClassVar[str] = "sequence"

    def __init__(self, initial: Value = ()) -> None:
        """Makes the model.

        Args:
            initial: The initial list; nil for an empty one.
        """
        self.initial = self._list(initial if initial is not None else ())

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f == "append":
            return (*state, op.argument)
        if op.f != "read":
            raise self._unknown(op)
        if not op.ok or same(self._list(op.result), state):
            return state
        return Inconsistent(f"can't read {value_text(op.result)} from {value_text(list(state))}")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"list": list(state)}

    def initial_code(self, numbers: Numbers) -> list[int]:
        """See `NativeModel`."""
        return [numbers(element) for element in self.initial]

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        if op.f == "append":
            return Code(APPEND, items=(numbers(op.argument),))
        if op.f != "read":
            raise self._unknown(op)
        return Code(READ_LIST, items=tuple(map(numbers, self._list(op.result)))) if op.ok else None

    def _list(self, value: Value) -> tuple[Value, ...]:
        if value is None:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ModelError(f"model {self.name}: expected a list, found {value_text(value)}")
        return tuple(value)

    def _unknown(self, op: Call) -> ModelError:
        return ModelError(f"model {self.name}: expected append or read, found {value_text(op.f)}")


class KeyValue(NativeModel):
    """One key of a store of strings: `put` replaces it, `append` adds at its end, `get` (or `read`) returns it."""

    name: ClassVar[str] = "kv"
    family: ClassVar[str] = "sequence"

    def __init__(self, initial: Value = "") -> None:
        """Makes the model.

        Args:
            initial: The initial string; nil for an empty one.
        """
        self.initial = self._string(initial)

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f == "put":
            return self._string(op.argument)
        if op.f == "append":
            return state + self._string(op.argument)
        if op.f not in {"get", "read"}:
            raise self._unknown(op)
        if not op.ok or self._string(op.result) == state:
            return state
        return Inconsistent(f"can't get {value_text(op.result)} from {value_text(state)}")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f in {"get", "read"}

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"value": state}

    def initial_code(self, numbers: Numbers) -> list[int]:  # noqa: ARG002 - characters are themselves
        """See `NativeModel`."""
        return list(map(ord, self.initial))

    def code(self, op: Call, numbers: Numbers) -> Code | None:  # noqa: ARG002 - characters are themselves
        """See `NativeModel`."""
        if op.f == "put":
            return Code(PUT, items=tuple(map(ord, self._string(op.argument))))
        if op.f == "append":
            return Code(APPEND, items=tuple(map(ord, self._string(op.argument))))
        if op.f not in {"get", "read"}:
            raise self._unknown(op)
        return Code(READ_LIST, items=tuple(map(ord, self._string(op.result)))) if op.ok else None

    def _string(self, value: Value) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ModelError(f"model {self.name}: expected a string, found {value_text(value)}")
        return value

    def _unknown(self, op: Call) -> ModelError:
        return ModelError(f"model {self.name}: expected put, append or get, found {value_text(op.f)}")
