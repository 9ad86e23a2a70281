"""One generator after the other."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.generator import Later
from harness.op import Invocation, OpType
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Process

MAX_EMPTY = 1000


def concat(*children: Generator) -> Generator:
    """Answers from the first child, then from the second, and so on. Workers do not wait for each other."""
    return _Concat(iter(children))


def cycle(make: Callable[[], Generator]) -> Generator:
    """Answers from a fresh child again and again. Workers do not wait for each other."""

    def fresh() -> Iterator[Generator]:
        while True:
            yield make()

    return _Concat(fresh())


def phases(*children: Generator) -> Generator:
    """Answers from one child after the other. A child begins when the one before has ended for all workers.

    A child has ended when it has no more operation for any worker, and all its operations are complete.
    """
    return _Phases(children)


def then(first: Generator, second: Generator) -> Generator:
    """Answers from `first`, and from `second` when `first` has ended for all workers."""
    return phases(first, second)


def synchronize(child: Generator) -> Generator:
    """Waits until all workers ask and no operation of the run is in flight, then answers as `child` does."""
    return _Synchronize(child)


def sleep(seconds: float) -> Generator:
    """Answers `Later` until `seconds` after the first question, and then ends."""
    return _Sleep(round(seconds * NS_PER_S))


def _now_for_all(asker: Asker) -> Later:
    """Lets all workers ask again at once, because the answers for waiting workers changed."""
    return Later(asker.now_ns, changed=True)


class _Concat:
    """The children that some worker still needs, and the place of each worker among them."""

    def __init__(self, children: Iterator[Generator]) -> None:
        self._coming = children
        self._children: deque[Generator] = deque()
        self._first = 0
        self._places: dict[int, int] = {}

    def ask(self, asker: Asker) -> Answer:
        for _ in range(MAX_EMPTY):
            place = self._places.setdefault(asker.worker, self._first) - self._first
            if place == len(self._children):
                child = next(self._coming, None)
                if child is None:
                    return None
                self._children.append(child)
            answer = self._children[place].ask(asker)
            if answer is not None:
                return answer
            self._places[asker.worker] += 1
            self._forget(asker.workers)
        raise InputError(
            f"{MAX_EMPTY} generators in a row had no operation for worker {asker.worker}; a cycle must not be empty"
        )

    def update(self, event: Op) -> None:
        for child in self._children:
            child.update(event)

    def _forget(self, workers: frozenset[int]) -> None:
        last = min(self._places.get(worker, self._first) for worker in workers)
        while self._first < last:
            self._children.popleft()
            self._first += 1


class _Phases:
    def __init__(self, children: Sequence[Generator]) -> None:
        self._children = deque(children)
        self._ended: set[int] = set()
        self._in_flight: set[Process] = set()

    def ask(self, asker: Asker) -> Answer:
        if not self._children:
            return None
        if asker.worker not in self._ended:
            answer = self._children[0].ask(asker)
            if isinstance(answer, Invocation):
                self._in_flight.add(asker.process)
            if answer is not None or len(self._children) == 1:
                return answer
            self._ended.add(asker.worker)
        if self._in_flight or not self._ended >= asker.workers:
            return Later()
        self._children.popleft()
        self._ended.clear()
        return _now_for_all(asker)

    def update(self, event: Op) -> None:
        if event.type is not OpType.INVOKE:
            self._in_flight.discard(event.process)
        if self._children:
            self._children[0].update(event)


class _Synchronize:
    def __init__(self, child: Generator) -> None:
        self._child = child
        self._arrived: set[int] = set()
        self._open = False

    def ask(self, asker: Asker) -> Answer:
        if not self._open:
            self._arrived.add(asker.worker)
            if not (asker.idle and self._arrived >= asker.workers):
                return Later()
            self._open = True
            return _now_for_all(asker)
        return self._child.ask(asker)

    def update(self, event: Op) -> None:
        self._child.update(event)


class _Sleep:
    def __init__(self, duration_ns: int) -> None:
        self._duration_ns = duration_ns
        self._until_ns: int | None = None

    def ask(self, asker: Asker) -> Answer:
        if self._until_ns is None:
            self._until_ns = asker.now_ns + self._duration_ns
        return Later(self._until_ns) if asker.now_ns < self._until_ns else None

    def update(self, event: Op) -> None:
        """Does nothing: only time ends a sleep."""
