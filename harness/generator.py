"""Generators, which choose the next operation of a free worker.

A generator is a small object. The harness asks it for the next operation of a worker at a time. It answers with an operation,
with "later", or with the end. It gets every event, so that it can react to results. It knows neither clients nor threads, so
whole runs are tested by simulation in virtual time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from harness.op import Invocation, Op, OpType

if TYPE_CHECKING:
    from harness.op import Value

MAX_WAITS: Final = 100  # so often a stream may wait in a row before its preview ends


class Asker(NamedTuple):
    """The free worker that asks.

    Attributes:
        worker: Its number, from 0; stable for the whole run. In an open loop: the number of the node's arrival stream.
        process: The process it works as.
        node: The name of its node.
        now_ns: The run's time.
        workers: The workers that this generator serves: all of the run, or fewer for a part of a generator.
        preview: Whether only `labrys plan` asks, and there is no run. Then a value that only a run knows is a word, such as
            `last-seen`.
    """

    worker: int
    process: int
    node: str
    now_ns: int
    workers: frozenset[int]
    preview: bool = False


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


def first_operations(generator: Generator, *, streams: int, count: int) -> Value:
    """Returns the first operations of each stream as JSON-like data, as `labrys plan` shows them.

    The streams are asked one after the other, and no operation gets an answer: each ends as an `info`, and the next process of
    its stream asks.

    Args:
        generator: A fresh generator of a workload.
        streams: The number of streams that it was made for.
        count: The number of operations of each stream. A stream that ends or waits for answers has fewer.

    Returns:
        A list of `{"stream": number, "operations": [{"f": ..., "key": ..., "value": ...}, ...]}`.
    """
    return [
        {"stream": number, "operations": _first_operations(generator, number, streams, count)}
        for number in range(streams)
    ]


def _first_operations(generator: Generator, number: int, streams: int, count: int) -> list[Value]:
    operations: list[Value] = []
    now_ns = waits = 0
    while len(operations) < count and waits < MAX_WAITS:
        process = number + len(operations) * streams
        answer = generator.ask(Asker(number, process, "", now_ns, frozenset(range(streams)), preview=True))
        if isinstance(answer, Invocation):
            f, value, key, *_ = answer
            operations.append({"f": f, "key": key, "value": value})
            for op_type in (OpType.INVOKE, OpType.INFO):
                generator.update(Op(0, now_ns, op_type, process, f, value, key))
            waits = 0
        elif answer is None or answer.at_ns is None:
            break
        else:
            now_ns = max(now_ns, answer.at_ns)
            waits += 1
    return operations
