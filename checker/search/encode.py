"""Encodes the operations of one object as the columns of the kernel.

The order of a history is the order of its events. The interval of an operation runs from the index of its invoke to that of its
completion. An operation that did not return never ends. Operations that certainly had no effect are left out, and so are those
that observe nothing.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from checker._kernel import REFUSED, Problem, Transitions
from checker.errors import ModelError
from checker.identity import identity
from checker.models import Call, Code, Model, NativeModel
from checker.models.opcodes import CUSTOM, INFINITE
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from harness.op import Operation

_FAIL: Final = OpType.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """A history by classes.

    Attributes:
        family: The kernel's name of the model.
        classes: The operations of each class, in the kernel's form.
        members: By operation, the place of its class in `classes`.
        starts: By operation, its start.
        ends: By operation, its end, or `INFINITE`.
        initial: The initial state, in the kernel's form.
    """

    family: str
    classes: Sequence[Code]
    members: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]
    initial: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A history, encoded for the kernel.

    Attributes:
        problem: The columns.
        operations: By position in the columns, the operation.
        codes: By position, the operation in the kernel's form; equal operations share one object.
        classes: These objects, each once.
        starts: By position, the start of the operation.
        ends: By position, the end of the operation, or `INFINITE`.
        initial: The initial state, in the kernel's form.
        coder: The coder that made the codes.
    """

    problem: Problem
    operations: list[Operation]
    codes: list[Code]
    classes: list[Code]
    starts: array[int]
    ends: array[int]
    initial: list[int]
    coder: _Native | _Custom

    def part(self, kept: Sequence[int], end: int | None) -> Problem:
        """Returns some of the operations for the kernel, as they were at a moment.

        Args:
            kept: Their positions.
            end: The index of the moment's event; operations that returned later are open. None for the end of the history.
        """
        ends = array("q")
        for i in kept:
            ended = _end(self.operations[i])
            ends.append(INFINITE if end is not None and ended > end else ended)
        starts = array("q", [self.operations[i].invoke_index for i in kept])
        return _problem(self.coder, [self.codes[i] for i in kept], starts, ends, self.initial)

    def with_intervals(self, starts: array[int], ends: array[int]) -> Problem:
        """Returns the operations for the kernel, with other intervals."""
        return _problem(self.coder, self.codes, starts, ends, self.initial)

    @property
    def table(self) -> Transitions:
        """The table of the model's states; only of a history that was encoded for one."""
        assert isinstance(self.coder, _Custom)  # noqa: S101 - see above
        return self.coder.table

    def after(self, path: Iterable[int]) -> int:
        """Returns the number of the state after some operations, by positions; -1 if the model refuses one of them."""
        state = 0
        for i in path:
            state = REFUSED if state == REFUSED else self.table.step(state, self.codes[i].a)
        return state

    @cached_property
    def events(self) -> Events:
        """The history by classes."""
        places = {id(code): index for index, code in enumerate(self.classes)}
        return Events(
            family=self.coder.family,
            classes=self.classes,
            members=[places[id(code)] for code in self.codes],
            starts=self.starts,
            ends=self.ends,
            initial=self.initial,
        )


def encode(model: Model, operations: Sequence[Operation], *, by_table: bool = False) -> Encoded:
    """Returns the operations of one object for the kernel.

    Args:
        model: The model of the object.
        operations: The history.
        by_table: Whether the kernel asks the model itself for each step, also if it knows the model.

    Raises:
        ModelError: An operation does not belong to the model.
    """
    coder = _Native(model) if isinstance(model, NativeModel) and not by_table else _Custom(model)
    kept: list[Operation] = []
    codes: list[Code] = []
    starts = array("q")
    ends = array("q")
    known: dict[Hashable, Code | None] = {}
    keeps_failed = model.keeps_failed
    per_process = model.per_process
    for operation in operations:
        kind = operation.type
        if kind is _FAIL and operation.f not in keeps_failed:
            continue
        key = (
            operation.f,
            identity(operation.value),
            identity(operation.result),
            kind,
            operation.process if per_process else None,
        )
        try:
            code = known[key]
        except KeyError:
            try:
                code = known[key] = coder.code(model.call(operation))
            except ModelError as error:
                raise ModelError(f"event {operation.invoke_index} (process {operation.process}): {error}") from error
        if code is None:
            continue
        kept.append(operation)
        codes.append(code)
        starts.append(operation.invoke_index)
        ends.append(_end(operation))
    initial = coder.initial()
    try:
        problem = _problem(coder, codes, starts, ends, initial)
    except ValueError as error:
        raise ModelError(f"model {model.name}: {error}") from error
    return Encoded(
        problem=problem,
        operations=kept,
        codes=codes,
        classes=[code for code in known.values() if code is not None],
        starts=starts,
        ends=ends,
        initial=initial,
        coder=coder,
    )


def _end(operation: Operation) -> int:
    if operation.type is OpType.INFO:
        return INFINITE
    end = operation.complete_index
    if end is None or end < operation.invoke_index:
        raise ModelError(
            f"event {operation.invoke_index} (process {operation.process}): expected a completion after it, found {end}"
        )
    return end


def _problem(
    coder: _Native | _Custom, codes: list[Code], starts: array[int], ends: array[int], initial: list[int]
) -> Problem:
    offsets = flat = None
    if any(code.items for code in codes):
        offsets, flat = array("q", [0]), array("q")
        for code in codes:
            flat.extend(code.items)
            offsets.append(len(flat))
    return Problem(
        coder.family,
        bytes(code.f for code in codes),
        array("q", [code.a for code in codes]),
        array("q", [code.b for code in codes]),
        starts,
        ends,
        initial=initial,
        offsets=offsets,
        flat=flat,
        step=coder.table,
        observers=coder.observers(),
    )


class _Native:
    """Codes of a model that the kernel knows."""

    step = table = None
    states = entries = None  # the kernel counts them

    def __init__(self, model: NativeModel) -> None:
        self.family = model.family
        self._model = model
        self._numbers = model.numbers()

    def code(self, op: Call) -> Code | None:
        return self._model.code(op, self._numbers)

    def initial(self) -> list[int]:
        return self._model.initial_code(self._numbers)

    def observers(self) -> None:
        return None

    def call(self, code: Code) -> Call:
        raise NotImplementedError(f"the kernel knows the model {self._model.name}, so {code} has no call")


class _Custom:
    """Numbers for the states and operations of a user's own model."""

    family = "custom"

    def __init__(self, model: Model) -> None:
        self._model = model
        self.table = Transitions(model)
        self.step = self.table.step

    @property
    def states(self) -> int:
        return self.table.states

    @property
    def entries(self) -> int:
        return self.table.entries

    def code(self, op: Call) -> Code | None:
        return Code(CUSTOM, self.table.add(op))

    def initial(self) -> list[int]:
        return []

    def call(self, code: Code) -> Call:
        """Returns the call that the model gets for the operations of a class."""
        return self.table.calls[code.a]

    def observers(self) -> bytes:
        return bytes(bool(self._model.observes(call)) for call in self.table.calls)
