"""Sets: add, remove, contains, read of the whole set."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from checker.errors import ModelError
from checker.identity import identity, is_collection, revived
from checker.models.base import Call, Code, Inconsistent, NativeModel, Numbers
from checker.models.opcodes import ADD, CONTAINS, READ_SET, REMOVE
from checker.words import value_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from checker.models.base import State
    from harness.op import Value


class SetModel(NativeModel):
    """`add` and `remove` have an element; `contains` has an element as argument and a boolean as result; `read` returns all."""

    name: ClassVar[str] = "set"
    family: ClassVar[str] = "set"
    functions: ClassVar[tuple[str, ...]] = ("add", "remove", "contains", "read")

    def __init__(self, initial: Value = ()) -> None:
        """Makes the model.

        Args:
            initial: The initial elements; nil for none.
        """
        self.initial = frozenset(self._identities(initial if initial is not None else ()))

    def step(self, state: State, op: Call) -> State | Inconsistent:  # noqa: PLR0911 - one for each case
        """See `Model`."""
        self._check(op)
        if op.f == "add":
            return state | {identity(op.argument)}
        if op.f == "remove":
            return state - {identity(op.argument)}
        if not op.ok:
            return state
        if op.f == "contains":
            is_member = identity(op.argument) in state
            if is_member == op.result:
                return state
            return Inconsistent(
                f"contains {value_text(op.argument)} can't be {value_text(op.result)} of {value_text(self._show(state))}"
            )
        if op.result is not None and self._identities(op.result).keys() == state:
            return state
        return Inconsistent(f"can't read {value_text(op.result)} from {value_text(self._show(state))}")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f in {"contains", "read"}

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"s": self._show(state)}

    def initial_code(self, numbers: Numbers) -> list[int]:
        """See `NativeModel`."""
        return sorted(numbers(revived(element)) for element in self.initial)

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        self._check(op)
        if op.f == "add":
            return Code(ADD, numbers(op.argument))
        if op.f == "remove":
            return Code(REMOVE, numbers(op.argument))
        if not op.ok:
            return None
        if op.f == "contains":
            return Code(CONTAINS, numbers(op.argument), int(op.result))
        if op.result is None:
            # A set that was not read equals no set: it gets an element that nobody can add.
            return Code(READ_SET, items=(numbers(("unread", id(self))),))
        items = [numbers(element) for element in self._identities(op.result).values()]
        return Code(READ_SET, items=tuple(sorted(items)))

    def _check(self, op: Call) -> None:
        if op.f not in self.functions:
            raise ModelError(
                f"model {self.name}: expected one of {', '.join(self.functions)}, found {value_text(op.f)}"
            )
        if op.f == "contains" and op.ok and not isinstance(op.result, bool):
            raise ModelError(
                f"model {self.name}: expected true or false as the result of contains, found {value_text(op.result)}"
            )

    def _identities(self, elements: Value) -> dict[Hashable, Value]:
        if not is_collection(elements):
            raise ModelError(f"model {self.name}: expected a set or a list of elements, found {value_text(elements)}")
        return {identity(element): element for element in elements}

    @staticmethod
    def _show(state: State) -> list[Value]:
        return sorted(map(revived, state), key=lambda element: (str(type(element)), str(element)))


class GrowSet(SetModel):
    """`add`, `contains` and `read`, as in `set`, without removals."""

    name: ClassVar[str] = "grow-set"
    family: ClassVar[str] = "grow-set"
    functions: ClassVar[tuple[str, ...]] = ("add", "contains", "read")
