"""Generators, which choose the next operation of a free worker.

A generator is a small object. The harness asks it for the next operation of a worker at a time. It answers with an operation,
with "later", or with the end. It gets every event, so that it can react to results. It knows neither clients nor threads, so
whole runs are tested by simulation in virtual time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from harness.op import Invocation

if TYPE_CHECKING:
    from harness.op import Op


class Asker(NamedTuple):
    """The free worker that asks.

    Attributes:
        worker: Its number, from 0; stable for the whole run. In an open loop: the number of the node's arrival stream.
        process: The process it works as.
        node: The name of its node.
        now_ns: The run's time.
        idle: Whether no operation of the whole run is in flight.
        workers: The workers that this generator serves: all of the run, or fewer for a part of a generator.
    """

    worker: int
    process: int
    node: str
    now_ns: int
    idle: bool
    workers: frozenset[int]


class Later(NamedTuple):
    """The worker has to wait.

    Attributes:
        at_ns: When to ask again; None: after the next event of the run.
        or_event: Whether to ask again also after the next event, if that comes before `at_ns`.
        changed: Whether this question changed the answers for other waiting workers; they ask again at once.
    """

    at_ns: int | None = None
    or_event: bool = False
    changed: bool = False


Answer: TypeAlias = Invocation | Later | None


class Generator(Protocol):
    """Chooses the operations of free workers."""

    def ask(self, asker: Asker) -> Answer:
        """Returns an operation for this worker, `Later`, or None if this worker will never get one again.

        The harness performs a returned operation at once, as the process of the asker.
        """
        ...

    def update(self, event: Op) -> None:
        """Receives an event of the history; invokes too."""
        ...
