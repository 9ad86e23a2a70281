"""Queues: FIFO, and unordered.

An `enqueue` has its element as argument, a `dequeue` as result. A dequeue that returned nil found the queue empty. A crashed
dequeue may have taken an element. With `crashed_dequeue="never"` it never does, as in knossos.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from checker.errors import ModelError, Unsuited
from checker.identity import identity, is_collection, same
from checker.models.base import Call, Code, Inconsistent, NativeModel, Numbers
from checker.models.opcodes import DEQUEUE, DEQUEUE_ANY, DEQUEUE_EMPTY, ENQUEUE
from checker.words import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.models.base import State
    from checker.models.rows import Rows
    from harness.op import Value

CrashedDequeue: TypeAlias = Literal["takes", "never"]


class _Queue(NativeModel):
    def __init__(self, initial: Value = (), *, crashed_dequeue: CrashedDequeue = "takes") -> None:
        """Makes the model.

        Args:
            initial: The initial elements, the first one to leave first; nil for none.
            crashed_dequeue: Whether a dequeue that did not return may have taken an element, or never does (as in knossos).
        """
        elements = initial if initial is not None else ()
        if not is_collection(elements):
            raise ModelError(
                f"model {self.name}: expected a list of elements as the initial state, found {value_text(elements)}"
            )
        self._elements = tuple(elements)
        self.crashed_dequeue = crashed_dequeue

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        if op.f == "enqueue":
            return Code(ENQUEUE, numbers(op.argument))
        if op.f != "dequeue":
            raise self._unknown(op)
        if not op.ok:
            return Code(DEQUEUE_ANY) if self.crashed_dequeue == "takes" else None
        return Code(DEQUEUE_EMPTY) if op.result is None else Code(DEQUEUE, numbers(op.result))

    def code_rows(self, f: str, rows: Rows) -> None:
        """See `NativeModel`."""
        if f == "enqueue":
            rows.put(rows.possible, ENQUEUE, rows.numbers(rows.argument, rows.possible))
            return
        if f != "dequeue":
            raise Unsuited
        took = rows.ok & ~rows.without_result
        rows.put(rows.ok & rows.without_result, DEQUEUE_EMPTY)
        rows.put(took, DEQUEUE, rows.numbers(rows.result, took))
        if self.crashed_dequeue == "takes":
            rows.put(rows.possible & ~rows.ok, DEQUEUE_ANY)

    def _unknown(self, op: Call) -> ModelError:
        return ModelError(f"model {self.name}: expected enqueue or dequeue, found {value_text(op.f)}")

    def _crashed_in_vain(self, op: Call) -> bool:
        return not op.ok and self.crashed_dequeue == "never"


class FifoQueue(_Queue):
    """First in, first out: `enqueue` has an element; `dequeue` returns one, or nil if the queue is empty."""

    name: ClassVar[str] = "fifo-queue"
    family: ClassVar[str] = "fifo-queue"

    def __init__(self, initial: Value = (), *, crashed_dequeue: CrashedDequeue = "takes") -> None:
        super().__init__(initial, crashed_dequeue=crashed_dequeue)
        self.initial = self._elements

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f == "enqueue":
            return (*state, op.argument)
        if op.f != "dequeue":
            raise self._unknown(op)
        if self._crashed_in_vain(op):
            return state
        if op.ok and op.result is None:
            return Inconsistent(f"found empty, but it has {value_text(state[0])}") if state else state
        if not state:
            return Inconsistent(f"can't dequeue {value_text(op.result)} from empty queue")
        if op.ok and not same(op.result, state[0]):
            return Inconsistent(f"can't dequeue {value_text(op.result)}, {value_text(state[0])} is first")
        return state[1:]

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"pending": list(state)}

    def initial_code(self, numbers: Numbers) -> list[int]:
        """See `NativeModel`."""
        return [numbers(element) for element in self.initial]

    code_rows = _Queue.code_rows


class UnorderedQueue(_Queue):
    """The functions of a FIFO queue, in any order.

    The state of this bag is the elements, and the number of elements that crashed dequeues took.

    Which elements they took is decided only when a dequeue finds the bag empty: a crashed dequeue never ends, so it may take
    effect as late as necessary.
    """

    name: ClassVar[str] = "unordered-queue"
    family: ClassVar[str] = "unordered-queue"

    def __init__(self, initial: Value = (), *, crashed_dequeue: CrashedDequeue = "takes") -> None:
        super().__init__(initial, crashed_dequeue=crashed_dequeue)
        self.initial = (self._sorted(self._elements), 0)

    def step(self, state: State, op: Call) -> State | Inconsistent:  # noqa: PLR0911 - one for each case
        """See `Model`."""
        elements, taken = state
        if op.f == "enqueue":
            return self._sorted((*elements, op.argument)), taken
        if op.f != "dequeue":
            raise self._unknown(op)
        if self._crashed_in_vain(op):
            return state
        if not op.ok:
            return (elements, taken + 1) if taken < len(elements) else Inconsistent("can't dequeue from empty queue")
        if op.result is None:
            if len(elements) > taken:
                return Inconsistent(f"found empty, but {len(elements) - taken} elements are there")
            return (), 0
        index = next((i for i, element in enumerate(elements) if same(element, op.result)), None)
        if index is None or len(elements) - 1 < taken:
            return Inconsistent(f"can't dequeue {value_text(op.result)}")
        return (*elements[:index], *elements[index + 1 :]), taken

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        elements, taken = state
        return {"pending": list(elements), "taken": taken} if taken else {"pending": list(elements)}

    def initial_code(self, numbers: Numbers) -> list[int]:
        """See `NativeModel`."""
        return [0, *sorted(numbers(element) for element in self.initial[0])]

    code_rows = _Queue.code_rows

    @staticmethod
    def _sorted(elements: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(sorted(elements, key=lambda element: repr(identity(element))))
