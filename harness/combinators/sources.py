"""Generators without children: the leaves of a tree of generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harness.generator import Answer, Asker, Generator
    from harness.op import Invocation, Op


def repeat(invocation: Invocation) -> Generator:
    """Answers the same operation for ever."""
    return _FromFunction(lambda _: invocation)


def sequence(invocations: Iterable[Invocation]) -> Generator:
    """Answers the operations in order, for all workers together, until there are no more."""
    return _Sequence(iter(invocations))


def from_function(function: Callable[[Asker], Answer]) -> Generator:
    """Answers the result of a function."""
    return _FromFunction(function)


class _FromFunction:
    def __init__(self, function: Callable[[Asker], Answer]) -> None:
        self._function = function

    def ask(self, asker: Asker) -> Answer:
        return self._function(asker)

    def update(self, event: Op) -> None:
        """Does nothing: the function gets no events."""


class _Sequence:
    def __init__(self, invocations: Iterator[Invocation]) -> None:
        self._invocations = invocations

    def ask(self, asker: Asker) -> Answer:  # noqa: ARG002 - the same for all
        return next(self._invocations, None)

    def update(self, event: Op) -> None:
        """Does nothing: the sequence does not depend on results."""
