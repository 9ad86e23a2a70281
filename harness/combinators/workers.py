"""Generators that serve some of the workers."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.op import NEMESIS, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Process


def on_workers(workers: Collection[int], child: Generator) -> Generator:
    """Serves only the workers with these numbers; for the others it has ended."""
    return _OnWorkers(frozenset(workers), child)


def reserve(*ranges: tuple[int, Generator], default: Generator) -> Generator:
    """Gives the first workers to the first generator, the next ones to the next, and the rest to `default`.

    Args:
        *ranges: A number of workers, and their generator. Only workers of this generator count, so a reserve inside another
            one divides the workers of its own part.
        default: The generator of all other workers.

    Raises:
        InputError: A number of workers is below 1.
    """
    if any(count < 1 for count, _ in ranges):
        raise InputError("each part of a reserve needs at least one worker")
    return _Reserve(ranges, default)


def each_worker(make: Callable[[], Generator]) -> Generator:
    """Gives each worker a fresh generator of its own."""
    return _EachWorker(make)


def each_process(make: Callable[[], Generator]) -> Generator:
    """Gives each process a fresh generator of its own, so a worker gets another one after an `info`."""
    return _EachProcess(make)


class _OnWorkers:
    def __init__(self, workers: frozenset[int], child: Generator) -> None:
        self._workers = workers
        self._child = child

    def ask(self, asker: Asker) -> Answer:
        if asker.worker not in self._workers:
            return None
        return self._child.ask(asker._replace(workers=asker.workers & self._workers))

    def update(self, event: Op) -> None:
        self._child.update(event)


class _Reserve:
    def __init__(self, ranges: Sequence[tuple[int, Generator]], default: Generator) -> None:
        self._ends = list(accumulate(count for count, _ in ranges))
        self._children = [child for _, child in ranges] + [default]
        # For each set of workers (usually one, of all workers): worker to its child, and to the workers of that child.
        self._parts: dict[frozenset[int], dict[int, tuple[Generator, frozenset[int]]]] = {}

    def ask(self, asker: Asker) -> Answer:
        parts = self._parts.get(asker.workers)
        if parts is None:
            parts = self._parts[asker.workers] = self._divide(asker.workers)
        child, workers = parts[asker.worker]
        return child.ask(asker._replace(workers=workers))

    def update(self, event: Op) -> None:
        for child in self._children:
            child.update(event)

    def _divide(self, workers: frozenset[int]) -> dict[int, tuple[Generator, frozenset[int]]]:
        order = sorted(workers)
        if self._ends and self._ends[-1] > len(order):
            raise InputError(
                f"a reserve needs {self._ends[-1]} workers and has only {len(order)}; raise the concurrency"
            )
        starts, ends = [0, *self._ends], [*self._ends, len(order)]
        parts = {}
        for child, start, end in zip(self._children, starts, ends, strict=True):
            members = frozenset(order[start:end])
            parts.update(dict.fromkeys(members, (child, members)))
        return parts


class _EachWorker:
    def __init__(self, make: Callable[[], Generator]) -> None:
        self._make = make
        self._children: dict[int, Generator] = {}
        self._asked_by: dict[Process, int] = {}

    def ask(self, asker: Asker) -> Answer:
        child = self._children.get(asker.worker)
        if child is None:
            child = self._children[asker.worker] = self._make()
        self._asked_by[asker.process] = asker.worker
        return child.ask(asker._replace(workers=frozenset((asker.worker,))))

    def update(self, event: Op) -> None:
        worker = self._asked_by.get(event.process)
        if worker is not None:
            self._children[worker].update(event)
            if event.type is OpType.INFO:
                del self._asked_by[event.process]


class _EachProcess:
    def __init__(self, make: Callable[[], Generator]) -> None:
        self._make = make
        self._children: dict[Process, Generator] = {}

    def ask(self, asker: Asker) -> Answer:
        child = self._children.get(asker.process)
        if child is None:
            child = self._children[asker.process] = self._make()
        return child.ask(asker._replace(workers=frozenset((asker.worker,))))

    def update(self, event: Op) -> None:
        child = self._children.get(event.process)
        if child is not None:
            child.update(event)
            if event.type is OpType.INFO and event.process != NEMESIS:
                del self._children[event.process]
