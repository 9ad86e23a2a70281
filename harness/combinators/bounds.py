"""Generators that end: after a number of operations, after a time, after a success."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.combinators.sources import repeat
from harness.generator import Later
from harness.op import Invocation, OpType
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Process


def limit(count: int, child: Generator) -> Generator:
    """Answers at most `count` operations of `child`, for all workers together."""
    return _Limit(count, child)


def once(invocation: Invocation) -> Generator:
    """Answers one operation, once."""
    return limit(1, repeat(invocation))


def time_limit(seconds: float, child: Generator) -> Generator:
    """Answers as `child` does until `seconds` after the first question. Operations in flight may end later."""
    return _TimeLimit(round(seconds * NS_PER_S), child)


def until_ok(child: Generator) -> Generator:
    """Answers as `child` does until one of its operations is `ok`."""
    return _UntilOk(child)


class _Limit:
    def __init__(self, count: int, child: Generator) -> None:
        self._left = count
        self._child = child

    def ask(self, asker: Asker) -> Answer:
        if self._left <= 0:
            return None
        answer = self._child.ask(asker)
        if isinstance(answer, Invocation):
            self._left -= 1
        return answer

    def update(self, event: Op) -> None:
        self._child.update(event)


class _TimeLimit:
    def __init__(self, limit_ns: int, child: Generator) -> None:
        self._limit_ns = limit_ns
        self._deadline_ns: int | None = None
        self._child = child

    def ask(self, asker: Asker) -> Answer:
        if self._deadline_ns is None:
            self._deadline_ns = asker.now_ns + self._limit_ns
        if asker.now_ns >= self._deadline_ns:
            return None
        answer = self._child.ask(asker)
        if isinstance(answer, Later):
            if answer.at_ns is None:
                return answer._replace(at_ns=self._deadline_ns, or_event=True)
            if answer.at_ns > self._deadline_ns:
                return answer._replace(at_ns=self._deadline_ns)
        return answer

    def update(self, event: Op) -> None:
        self._child.update(event)


class _UntilOk:
    def __init__(self, child: Generator) -> None:
        self._child = child
        self._in_flight: set[Process] = set()
        self._done = False

    def ask(self, asker: Asker) -> Answer:
        if self._done:
            return None
        answer = self._child.ask(asker)
        if isinstance(answer, Invocation):
            self._in_flight.add(asker.process)
        return answer

    def update(self, event: Op) -> None:
        self._child.update(event)
        if event.type is not OpType.INVOKE and event.process in self._in_flight:
            self._in_flight.discard(event.process)
            self._done = self._done or event.type is OpType.OK
