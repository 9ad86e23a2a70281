"""What a history is, for the function that decides it; and histories whose operations are objects.

A history knows its keys, the columns of each key for the kernel, and the operations of some rows. Where the operations are kept
is its own matter: as objects, in arrays, in a file. `checker.decide.decision.decide` decides all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import checker.decide.deciding as by_key
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from checker._kernel import Outcome
    from checker.decide.deciding import CodedKey
    from checker.decide.question import Question
    from checker.search.configurations import Known
    from harness.op import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """The operations of an invalid key that explain why it is.

    Attributes:
        operations: The operations; none if they are too many for objects.
        coded: Their columns, if the outcome is about these; None if other columns were decided.
        is_part: Whether the key has others; then the explanation claims nothing about these.
        makers: Of a part: operations of the key, with all that write or add a value that an operation of the part observed,
            also failed ones; None if these are not known.
    """

    operations: Sequence[Operation]
    coded: by_key.Objects | None = None
    is_part: bool = False
    makers: Sequence[Operation] | None = None


class Decidable(Protocol):
    """A history over independent keys; a place is that of a key in `keys`.

    Attributes:
        keys: The keys, in the order of the history.
    """

    @property
    def keys(self) -> Sequence[str | None]: ...  # noqa: D102 - see the class

    def size(self, index: int) -> int:
        """Returns the number of operations of a key."""

    def coded(self, question: Question) -> Sequence[CodedKey]:
        """Returns the columns of each key: from arrays where these suffice for the question, or else from objects.

        Raises:
            ModelError: An operation does not belong to the model.
        """

    def operations(self, index: int) -> Sequence[Operation]:
        """Returns all operations of a key."""

    def named(self, wanted: Mapping[int, Sequence[int]]) -> Mapping[int, Known]:
        """Returns operations by the place of their key and by their position in its columns."""

    def previous_oks(self, ends: Mapping[int, int]) -> Mapping[int, Operation]:
        """Returns the last operation of each of some keys that returned ok before an event.

        Args:
            ends: The index of the event, by the place of the key.

        Returns:
            The operations by place; a key without one is left out.
        """

    def excerpt(self, index: int, outcome: Outcome) -> Excerpt:
        """Returns the operations that explain the outcome of an invalid key."""


class OfObjects:
    """A history whose operations are objects."""

    def __init__(
        self,
        groups: Mapping[str | None, Sequence[Operation]],
        *,
        is_part: bool = False,
        makers: Sequence[Operation] | None = None,
    ) -> None:
        """Takes the operations by keys; see `Excerpt` for the others."""
        self.keys = list(groups)
        self._is_part, self._makers = is_part, makers
        self._groups = list(groups.values())
        self._coded: Sequence[by_key.Objects] = ()

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> OfObjects:
        """Returns the history of some operations; the order of each key is that of `invoke_index` and `complete_index`."""
        groups: dict[str | None, list[Operation]] = {}
        for op in operations:
            groups.setdefault(op.key, []).append(op)
        return cls(groups)

    @classmethod
    def of_one(
        cls, operations: Sequence[Operation], *, is_part: bool = False, makers: Sequence[Operation] | None = None
    ) -> OfObjects:
        """Returns the history of one object, or a part of it; the keys of its operations are ignored."""
        return cls({None: operations} if operations else {}, is_part=is_part, makers=makers)

    def size(self, index: int) -> int:
        """See `Decidable`."""
        return len(self._groups[index])

    def coded(self, question: Question) -> Sequence[CodedKey]:
        """See `Decidable`."""
        self._coded = [by_key.Objects.of(question.model, group) for group in self._groups]
        return self._coded

    def operations(self, index: int) -> Sequence[Operation]:
        """See `Decidable`."""
        return self._groups[index]

    def named(self, wanted: Mapping[int, Sequence[int]]) -> Mapping[int, Known]:
        """See `Decidable`."""
        return {index: self._coded[index].encoded.operations for index in wanted}

    def previous_oks(self, ends: Mapping[int, int]) -> Mapping[int, Operation]:
        """See `Decidable`."""
        return previous_oks(ends, self.operations)

    def excerpt(self, index: int, outcome: Outcome) -> Excerpt:  # noqa: ARG002 - the outcome is about all operations
        """See `Decidable`."""
        coded = self._coded[index]
        return Excerpt(operations=coded.operations, coded=coded, is_part=self._is_part, makers=self._makers)


def previous_oks(
    ends: Mapping[int, int], operations_of: Callable[[int], Sequence[Operation]]
) -> Mapping[int, Operation]:
    """Returns what `Decidable.previous_oks` does, from the operations of each key."""
    previous = {}
    for index, end in ends.items():
        before = [
            op
            for op in operations_of(index)
            if op.type is OpType.OK and op.complete_index is not None and op.complete_index < end
        ]
        if before:
            previous[index] = max(before, key=lambda op: op.complete_index or 0)
    return previous
