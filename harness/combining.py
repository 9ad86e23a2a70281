"""How the generators of `harness.combinators` answer."""

from __future__ import annotations

from bisect import bisect
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.generator import Later
from harness.op import Invocation, OpType
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness.combinators import Source, Stream
    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Process


class Leaf:
    """An operation that is repeated, or a function. It needs no events."""

    __slots__ = ("ask",)

    def __init__(self, source: Invocation | Callable[[Asker], Answer]) -> None:
        self.ask: Callable[[Asker], Answer] = (lambda _: source) if isinstance(source, Invocation) else source

    def update(self, event: Op) -> None:
        """Does nothing."""


class Over:
    """A generator over others; it gives events to those that need them.

    Attributes:
        deaf: Whether no event changes this generator, so that nobody has to call `update`.
        divides: Whether the answers depend on the workers that it serves.
        update: See `harness.generator.Generator`.
    """

    def __init__(self, *sources: Source) -> None:
        self._children: list[Generator] = []
        told = []
        self.divides = False
        for source in sources:
            if isinstance(source, Invocation) or callable(source):
                self._children.append(Leaf(source))
                continue
            self._children.append(source)
            self.divides = self.divides or getattr(source, "divides", True)
            if not getattr(source, "deaf", False):
                told.append(source.update)
        self.deaf = not told
        self.update: Callable[[Op], None] = told[0] if len(told) == 1 else _telling(told) if told else _nobody


def _nobody(event: Op) -> None:
    """Gives an event to nobody."""


def _telling(told: Sequence[Callable[[Op], None]]) -> Callable[[Op], None]:
    """Returns a function that gives an event to all of these."""

    def update(event: Op) -> None:
        for updater in told:
            updater(event)

    return update


class EachStream(Over):
    """A generator for each stream."""

    def __init__(self, make: Callable[[Stream], Source], streams: Sequence[Stream]) -> None:
        super().__init__(*map(make, streams))
        self._streams = [(stream, child.ask) for stream, child in zip(streams, self._children, strict=True)]
        self.ask: Callable[[Asker], Answer] = self._of_one if self.divides else self._of_all

    def _of_one(self, asker: Asker) -> Answer:
        return self._of_all(asker._replace(workers=frozenset((asker.worker,))))

    def _of_all(self, asker: Asker) -> Answer:
        stream, ask = self._streams[asker[0]]  # its worker; by place is faster than by name
        answer = ask(asker)
        if type(answer) is Invocation:
            stream.count += 1
        return answer


class Mix(Over):
    """Draws which child answers."""

    def __init__(self, stream: Stream, weights: list[float], children: Sequence[Source], *, total: float) -> None:
        super().__init__(*children)
        self._random = stream.random
        self._weights = weights
        self._asks = [child.ask for child in self._children]
        self._below = _bounds(weights, total)
        self._drawn: int | None = None  # it stays until its child has an operation

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        drawn = self._drawn
        if drawn is None:
            drawn = bisect(self._below, self._random())
            answer = self._asks[drawn](asker)
            if type(answer) is Invocation:
                return answer
        else:
            self._drawn = None
            answer = self._asks[drawn](asker)
        if answer is None:
            return self.ask(asker) if self._drop(drawn) else None
        if type(answer) is Later:
            self._drawn = drawn
        return answer

    def _drop(self, ended: int) -> bool:
        """Leaves out a child that has ended. Returns whether there is another one."""
        weights = [weight for index, weight in enumerate(self._weights) if index != ended]
        if not sum(weights) > 0:
            return False
        del self._asks[ended]
        self._weights = weights
        self._below = _bounds(weights, sum(weights))
        return True


def _bounds(weights: Sequence[float], total: float) -> list[float]:
    """Returns for each child but the last the number below which a draw falls on it, or on one before it."""
    return [end / total for end in accumulate(weights[:-1])]


class Independent(Over):
    """Gives each operation a key."""

    def __init__(self, stream: Stream, keys: Callable[[], str | None], child: Source) -> None:
        super().__init__(child)
        self._stream = stream
        self._keys = keys
        self._ask = self._children[0].ask
        self._waits = False  # the child has a key, and no operation yet

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        stream = self._stream
        if not self._waits:
            stream.key = self._keys()
        answer = self._ask(asker)
        if type(answer) is Invocation:
            self._waits = False
            f, value, key, phase, scheduled_ns = answer
            # `_make` takes half of the time of the constructor, and this is the most frequent step of a workload with keys.
            return answer if key is stream.key else Invocation._make((f, value, stream.key, phase, scheduled_ns))
        self._waits = True
        return answer


class OnUpdate(Over):
    """Calls a function with each event."""

    def __init__(self, update: Callable[[Op], None], child: Source) -> None:
        super().__init__(child)
        self.ask = self._children[0].ask
        self.update = update if self.deaf else _telling([update, self.update])
        self.deaf = False


class UntilOk:
    """Repeats operations until they succeed."""

    def __init__(self, invocations: Iterable[Invocation], attempts: int) -> None:
        self._due = deque((invocation, attempts) for invocation in invocations)
        self._in_flight: dict[Process, tuple[Invocation, int]] = {}

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        if not self._due:
            return Later() if self._in_flight else None
        invocation, attempts = self._due.popleft()
        self._in_flight[asker.process] = invocation, attempts - 1
        return invocation

    def update(self, event: Op) -> None:
        """See `harness.generator.Generator`."""
        if event.type is OpType.INVOKE or event.process not in self._in_flight:
            return
        invocation, attempts = self._in_flight.pop(event.process)
        if event.type is not OpType.OK and attempts:
            self._due.append((invocation, attempts))


class AtMost(Over):
    """Ends after a number of operations."""

    def __init__(self, count: int, child: Source) -> None:
        super().__init__(child)
        self._left = count
        self._ask = self._children[0].ask

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        if self._left <= 0:
            return None
        answer = self._ask(asker)
        if type(answer) is Invocation:
            self._left -= 1
        return answer


class TimeLimit(Over):
    """Ends after a time."""

    def __init__(self, limit_ns: int, child: Source) -> None:
        super().__init__(child)
        self._limit_ns = limit_ns
        self._deadline_ns: int | None = None
        self._ask = self._children[0].ask

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        if self._deadline_ns is None:
            self._deadline_ns = asker.now_ns + self._limit_ns
        if asker.now_ns >= self._deadline_ns:
            return None
        answer = self._ask(asker)
        if type(answer) is Later:
            if answer.at_ns is None:
                return answer._replace(at_ns=self._deadline_ns, or_event=True)
            if answer.at_ns > self._deadline_ns:
                return answer._replace(at_ns=self._deadline_ns)
        return answer


class OneAfterAnother(Over):
    """One child after the other."""

    def __init__(self, children: Sequence[Source]) -> None:
        super().__init__(*children)
        self.divides = True
        self.deaf = False
        self.update = _telling([self._ends, self.update])
        self._coming = deque(self._children)
        self._ended: set[int] = set()
        self._in_flight: set[Process] = set()

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        if not self._coming:
            return None
        if asker.worker not in self._ended:
            answer = self._coming[0].ask(asker)
            if isinstance(answer, Invocation):
                self._in_flight.add(asker.process)
            if answer is not None or len(self._coming) == 1:
                return answer
            self._ended.add(asker.worker)
        if self._in_flight or not self._ended >= asker.workers:
            return Later()
        self._coming.popleft()
        self._ended.clear()
        # All workers ask again at once, because the answers for waiting workers changed.
        return Later(asker.now_ns, changed=True)

    def _ends(self, event: Op) -> None:
        if event.type is not OpType.INVOKE:
            self._in_flight.discard(event.process)


class Stagger(Over):
    """Spaces operations by gaps."""

    def __init__(self, draw_gap_s: Callable[[], float], child: Source) -> None:
        super().__init__(child)
        self._draw_gap_s = draw_gap_s
        self._due_ns: int | None = None

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        if self._due_ns is None:
            self._due_ns = asker.now_ns
        if asker.now_ns < self._due_ns:
            return Later(self._due_ns)
        answer = self._children[0].ask(asker)
        if isinstance(answer, Invocation):
            self._due_ns = max(self._due_ns + round(self._draw_gap_s() * NS_PER_S), asker.now_ns)
        return answer


class Reserve(Over):
    """Divides the workers among children."""

    def __init__(self, ranges: Sequence[tuple[int, Source]], default: Source) -> None:
        super().__init__(*(child for _, child in ranges), default)
        self.divides = True
        self._ends = list(accumulate(count for count, _ in ranges))
        # For each set of workers (usually one, of all workers): worker to its child, and to the workers of that child.
        self._parts: dict[frozenset[int], dict[int, tuple[Generator, frozenset[int]]]] = {}

    def ask(self, asker: Asker) -> Answer:
        """See `harness.generator.Generator`."""
        parts = self._parts.get(asker.workers)
        if parts is None:
            parts = self._parts[asker.workers] = self._divide(asker.workers)
        child, workers = parts[asker.worker]
        return child.ask(asker._replace(workers=workers))

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
