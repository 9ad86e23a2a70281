"""Models: what objects do, one operation at a time; found by name.

Their modules are small and import nothing heavy, so all of them are here.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Final

from checker.errors import ModelError
from checker.models.base import Call, Code, Inconsistent, Model, NativeModel, Numbers
from checker.models.counters import Counter
from checker.models.locks import Mutex, OwnerMutex
from checker.models.opcodes import NOOP
from checker.models.queues import FifoQueue, UnorderedQueue
from checker.models.registers import CasRegister, MultiRegister, Register
from checker.models.sequences import KeyValue, ListAppend
from checker.models.sets import GrowSet, SetModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.models.base import State


class Noop(NativeModel):
    """Everything is possible and changes nothing."""

    name: ClassVar[str] = "noop"
    family: ClassVar[str] = "noop"

    def __init__(self, initial: object = None) -> None:
        """Makes the model.

        Args:
            initial: Anything.
        """
        self.initial = initial

    def step(self, state: State, op: Call) -> State | Inconsistent:  # noqa: ARG002 - that is the point
        """See `Model`."""
        return state

    def observes(self, op: Call) -> bool:  # noqa: ARG002 - that is the point
        """See `Model`."""
        return True

    def initial_code(self, numbers: Numbers) -> list[int]:  # noqa: ARG002 - no values
        """See `NativeModel`."""
        return []

    def code(self, op: Call, numbers: Numbers) -> Code | None:  # noqa: ARG002 - that is the point
        """See `NativeModel`."""
        return Code(NOOP)


MODELS: Final[Mapping[str, type[Model]]] = {
    cls.name: cls
    for cls in (
        Register,
        CasRegister,
        Mutex,
        OwnerMutex,
        MultiRegister,
        SetModel,
        GrowSet,
        Counter,
        FifoQueue,
        UnorderedQueue,
        ListAppend,
        KeyValue,
        Noop,
    )
}


def model(name: str, **options: Any) -> Model:
    """Returns the model of that name.

    Args:
        name: As on the command line, e.g. `cas-register`.
        **options: What its class takes: `initial`; for registers `nil_read` and `failed_cas`; for queues `crashed_dequeue`.
            Options that are None, or that this model does not have, are left out, so that one set of options fits all.

    Raises:
        ModelError: There is no such model, or it cannot begin like that.
    """
    cls = MODELS.get(name)
    if cls is None:
        raise ModelError(f"expected one of the models {', '.join(MODELS)}, found {name!r}")
    known = inspect.signature(cls).parameters
    return cls(**{key: value for key, value in options.items() if value is not None and key in known})


__all__ = ["MODELS", "Call", "Code", "Inconsistent", "Model", "NativeModel", "Noop", "Numbers", "model"]
