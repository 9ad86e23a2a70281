"""Locks: with an owner, and without one as in knossos."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from checker.errors import ModelError, Unsuited
from checker.models.base import Call, Code, Inconsistent, NativeModel, Numbers
from checker.models.opcodes import ACQUIRE, RELEASE
from checker.words import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.models.base import State
    from checker.models.rows import Rows
    from harness.op import Value

_WRITE: Final = "write"  # of a holder to a resource, see the workload `lock`


class Mutex(NativeModel):
    """`acquire` and `release`; any process may release."""

    name: ClassVar[str] = "mutex"
    family: ClassVar[str] = "mutex"
    numbers_values: ClassVar[bool] = False
    # `step` does not use the process, but the near-linear analyzer needs it.
    per_process: ClassVar[bool] = True

    def __init__(self, initial: Value = False) -> None:  # noqa: FBT002 - it is a value, not a switch
        """Makes the model.

        Args:
            initial: Whether it is locked initially; nil is false.
        """
        if initial is not None and not isinstance(initial, bool):
            raise ModelError(
                f"model {self.name}: expected true or false as the initial state, found {value_text(initial)}"
            )
        self.initial = bool(initial)

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f == "acquire":
            return Inconsistent("already held") if state else True
        if op.f == "release":
            return False if state else Inconsistent("not held")
        raise self._unknown(op)

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"locked?": state}

    def initial_code(self, numbers: Numbers) -> list[int]:  # noqa: ARG002 - no values
        """See `NativeModel`."""
        return [int(self.initial)]

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        if op.f not in {"acquire", "release"}:
            raise self._unknown(op)
        return Code(ACQUIRE if op.f == "acquire" else RELEASE, numbers(op.process))

    def code_rows(self, f: str, rows: Rows) -> None:
        """See `NativeModel`."""
        if f not in {"acquire", "release"}:
            raise Unsuited
        rows.put(rows.possible, ACQUIRE if f == "acquire" else RELEASE, rows.processes(rows.possible))

    def _unknown(self, op: Call) -> ModelError:
        return ModelError(f"model {self.name}: expected acquire or release, found {value_text(op.f)}")


class OwnerMutex(Mutex):
    """`acquire` and `release`; only the holder may release. A `write` to what the lock protects does not reach the lock."""

    name: ClassVar[str] = "owner-mutex"
    family: ClassVar[str] = "owner-mutex"

    def __init__(self, initial: Value = None) -> None:
        """Makes the model; the lock is free initially.

        Args:
            initial: Nil or false.
        """
        if initial:
            raise ModelError(f"model {self.name}: expected nil as the initial state, found {value_text(initial)}")
        self.initial = None

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f == "acquire":
            return (op.process,) if state is None else Inconsistent(f"already held by process {state[0]}")
        if op.f == "release":
            if state == (op.process,):
                return None
            return Inconsistent("not held" if state is None else f"held by process {state[0]}")
        if self.silent(op):
            return state
        raise self._unknown(op)

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"owner": None if state is None else state[0]}

    def initial_code(self, numbers: Numbers) -> list[int]:  # noqa: ARG002 - no values
        """See `NativeModel`."""
        return [0]

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        return None if self.silent(op) else super().code(op, numbers)

    def code_rows(self, f: str, rows: Rows) -> None:
        """See `NativeModel`."""
        if f != _WRITE:
            super().code_rows(f, rows)

    def silent(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == _WRITE

    def _unknown(self, op: Call) -> ModelError:
        return ModelError(f"model {self.name}: expected acquire, release or write, found {value_text(op.f)}")
