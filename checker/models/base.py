"""The base of models: sequential objects, one operation at a time.

A model of your own needs an initial state and a `step`:

    class Latch(Model):
        name = "latch"
        initial = False

        def step(self, state: bool, op: Call) -> bool | Inconsistent:
            if op.f == "set":
                return True
            return state if op.value is state else Inconsistent(f"read {op.value}, but the latch is {state}")

States must be hashable, and `step` must depend only on its arguments: it is called once for each state and each kind of
operation, and its answer is cached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from checker.errors import Unsuited
from checker.identity import identity
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from checker.models.rows import Rows
    from harness.op import Operation, Process, Value

State: TypeAlias = Any  # any hashable object


@dataclass(slots=True, unsafe_hash=True)
class Inconsistent:
    """The operation is not possible in that state. Not `frozen`, since a search makes many of them.

    Attributes:
        message: The reason.
    """

    message: str


class Call(NamedTuple):
    """An operation in the form for a model.

    Attributes:
        f: The function.
        value: The result if there is one and it is known, else the argument.
        argument: The argument.
        result: The result; None for an operation that did not return, whose result is unknown.
        ok: Whether it returned. If not, it may have happened with any result.
        failed: Whether it is known to have had no effect; the model gets it because it observes the state.
        process: The process; None unless the model requests it by `per_process`.
    """

    f: str
    value: Value
    argument: Value
    result: Value
    ok: bool
    failed: bool = False
    process: Process | None = None


class Flow(NamedTuple):
    """The values that an operation needs, takes and makes; see `Model.flow`.

    Attributes:
        needs: Values that must be present right before it.
        takes: Values that must be present right before it, and of each of which it removes one copy.
        makes: Values that it adds, one copy of each.
    """

    needs: Iterable[Value] = ()
    takes: Iterable[Value] = ()
    makes: Iterable[Value] = ()


class Code(NamedTuple):
    """An operation in the kernel's form; see `checker/kernel/src/ops.rs`.

    Attributes:
        f: The opcode.
        a: First argument.
        b: Second argument.
        items: List argument.
    """

    f: int
    a: int = 0
    b: int = 0
    items: tuple[int, ...] = ()


class Numbers:
    """Gives every value a number; equal values have equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __call__(self, value: Value) -> int:
        """Returns the value's number."""
        return self._numbers.setdefault(identity(value), len(self._numbers))


class Model:
    """A sequential object; the base of all models.

    Attributes:
        name: Its name on the command line.
        initial: The initial state.
        initial_values: The values that are present initially, for models with `flow`.
        per_process: Whether `step` uses the process, so that operations of different processes are different.
        keeps_failed: Functions whose failed operations observe the state.
    """

    name: ClassVar[str] = "custom"
    initial: State = None
    initial_values: Sequence[Value] = ()
    per_process: ClassVar[bool] = False
    keeps_failed: frozenset[str] = frozenset()

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """Returns the state after the operation, or the reason why it is not possible."""
        raise NotImplementedError

    def observes(self, op: Call) -> bool:  # noqa: ARG002 - subclasses may use it
        """Returns whether such an operation can never change any state. True makes the search much faster."""
        return False

    def flow(self, op: Call) -> Flow | None:  # noqa: ARG002 - subclasses may use it
        """Returns where the values of an operation come from, so that an answer from nowhere is found before any search.

        The model promises this for each legal order: a value that an operation needs or takes was made before, by another
        operation, or is one of `initial_values`; and no more copies of it are taken than have been made. An operation that did
        not return (`op.ok` is false) needs only what it needs for every result.

        Returns:
            None, which is the default: the operation may make any value.
        """
        return None

    @property
    def has_flow(self) -> bool:
        """Whether the model's class defines `flow`."""
        return type(self).flow is not Model.flow

    @property
    def has_impossible(self) -> bool:
        """Whether the model's class defines `impossible`."""
        return type(self).impossible is not Model.impossible

    def impossible(self, op: Call) -> str | None:  # noqa: ARG002 - subclasses may use it
        """Returns why no reachable state allows such an operation, so that its answer is refuted before any search.

        For example, the balances in a read of a bank do not add up to the bank's total. It is called only for operations that
        returned.

        Returns:
            None, which is the default: some state may allow it.
        """
        return None

    def silent(self, op: Call) -> bool:  # noqa: ARG002 - subclasses may use it
        """Returns whether such an operation is possible in every state and changes none, so that it observes nothing."""
        return False

    def describe(self, state: State) -> Mapping[str, Value]:
        """Returns the state in the form for results."""
        return {"state": state}

    def call(self, operation: Operation) -> Call:
        """Returns the operation in the form for `step`."""
        ok = operation.type is OpType.OK
        known = ok and operation.result is not None
        return Call(
            f=operation.f,
            value=operation.result if known else operation.value,
            argument=operation.value,
            result=operation.result if ok else None,
            ok=ok,
            failed=operation.type is OpType.FAIL,
            process=operation.process if self.per_process else None,
        )


class NativeModel(Model):
    """A model that the kernel knows too.

    Attributes:
        family: The kernel's name for it.
        numbers_values: Whether the numbers in its codes stand for values; if not, they are counts or processes.
    """

    family: ClassVar[str]
    numbers_values: ClassVar[bool] = True

    def numbers(self) -> Numbers:
        """Returns fresh numbers for the values of one history."""
        return Numbers()

    def initial_code(self, numbers: Numbers) -> list[int]:
        """Returns the initial state in the kernel's form."""
        raise NotImplementedError

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """Returns the operation in the kernel's form; None if it observes nothing and changes nothing.

        Raises:
            ModelError: The model has no such operation.
        """
        raise NotImplementedError

    def code_rows(self, f: str, rows: Rows) -> None:  # noqa: ARG002 - for models with a coding from arrays
        """Codes all operations of one function from arrays, as `code` does one by one.

        A subclass may change `code`, so arrays are used only for a class that defines this itself.

        Raises:
            Unsuited: Arrays cannot represent the function or a value.
        """
        raise Unsuited
