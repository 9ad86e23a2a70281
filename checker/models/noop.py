"""The model of an object that does anything: every history of it is linearizable."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from checker.models.base import Code, NativeModel
from checker.models.opcodes import NOOP

if TYPE_CHECKING:
    from checker.models.base import Call, Inconsistent, Numbers, State


class Noop(NativeModel):
    """All functions; everything is possible and changes nothing."""

    name: ClassVar[str] = "noop"
    family: ClassVar[str] = "noop"

    def __init__(self, initial: object = None) -> None:
        """Makes the model.

        Args:
            initial: Anything.
        """
        self.initial = initial

    def step(self, state: State, op: Call) -> State | Inconsistent:  # noqa: ARG002 - every operation is possible
        """See `Model`."""
        return state

    def observes(self, op: Call) -> bool:  # noqa: ARG002 - every operation is an observer
        """See `Model`."""
        return True

    def initial_code(self, numbers: Numbers) -> list[int]:  # noqa: ARG002 - no values
        """See `NativeModel`."""
        return []

    def code(self, op: Call, numbers: Numbers) -> Code | None:  # noqa: ARG002 - no operation has a code
        """See `NativeModel`."""
        return Code(NOOP)
