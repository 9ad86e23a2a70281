"""Generators that combine generators, with Jepsen's names where the meaning is the same.

An operation and a function are generators too: the operation is answered again and again, the function is called with the asker
each time. There are two levels, and each generator is for both unless it takes a `Stream`:

- `each_stream` makes a generator for each stream of a run. In it, `mix` and `independent` choose *what* a client does. They
  draw from their stream alone, so the n-th operation of a stream depends on the seed, the stream and n, and on no other client.
- `limit`, `time_limit`, `phases`, `sleep`, `stagger` and `reserve` choose *when* and *who*.

All of them keep two rules. They pass on an operation of a child at once, so no operation is drawn and then dropped. And each
child gets every event, of its own operations and of others; `on_update` hands the events to a function.
"""

from __future__ import annotations

from bisect import bisect
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

from harness.errors import InputError
from harness.generator import Later
from harness.op import Invocation, OpType
from harness.randomness import stream as random_stream
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Process

    Source: TypeAlias = Generator | Invocation | Callable[[Asker], Answer]

ATTEMPTS: Final = 5
# A stream has at least so many operations on a key, so that the operations of several streams overlap there.
MIN_OPS_PER_STREAM: Final = 5
_NEVER_NS: Final = 2**63 - 1
_DRAW_BITS: Final = 64  # that a draw takes from the generator of `random.Random`


class Stream:
    """One of the op streams of a run, from which a generator draws: that of a worker, in an open loop that of a node.

    Attributes:
        number: Its number, from 0.
        streams: The number of streams of the run.
        count: The number of its operations so far.
        key: The key of the operation that `independent` asks for; None outside of it.
        random: Draws a number from 0 to below 1.
    """

    __slots__ = ("_bits", "count", "key", "number", "random", "streams")

    def __init__(self, *, seed: int, number: int, streams: int) -> None:
        self.number = number
        self.streams = streams
        self.count = 0
        self.key: str | None = None
        draws = random_stream(seed, f"worker/{number}")
        self.random: Callable[[], float] = draws.random
        self._bits = draws.getrandbits

    def below(self, count: int) -> int:
        """Draws a whole number from 0 to below `count`."""
        return int(self.random() * count)

    def any_key(self, prefix: str, count: int) -> str | None:
        """Draws one of `count` keys, e.g. `c2`; returns None if there is only one object, which needs no key."""
        number = int(self.random() * count)
        return f"{prefix}{number}" if count > 1 else None

    def skip(self, count: int) -> None:
        """Draws numbers that nobody uses, so that each operation takes equally many."""
        self._bits(_DRAW_BITS * count)  # in one call, which takes as many as so many calls of `random`

    def unique(self) -> int:
        """Returns a number above 0 that no other operation of the run gets: a value to write."""
        return self.count * self.streams + self.number + 1


def each_stream(make: Callable[[Stream], Source], *, seed: int, streams: int) -> Generator:
    """Gives each stream a generator of its own.

    Args:
        make: Makes the generator of a stream.
        seed: The run's root seed.
        streams: The number of streams, as a workload gets it.
    """
    return _EachStream(make, [Stream(seed=seed, number=number, streams=streams) for number in range(streams)])


def mix(stream: Stream, *parts: tuple[float, Source], rest: Source | None = None) -> Generator:
    """Draws for each operation which child answers. It draws before the child does, once for each operation.

    A child that waits keeps its turn. A child that has ended is not drawn any more.

    Args:
        stream: The stream to draw from.
        *parts: A number and a child each. The numbers are weights. With `rest`, they are shares of all operations.
        rest: The child of all other operations.

    Raises:
        InputError: A number is below 0, or all weights are 0.
    """
    weights, children = [weight for weight, _ in parts], [child for _, child in parts]
    total = sum(weights)
    if rest is not None:
        # Shares stay as they are, so that no rounding moves them.
        weights.append(max(0.0, 1 - total))
        children.append(rest)
        total = 1.0
    if not weights or not all(weight >= 0 for weight in weights) or not total > 0:
        raise InputError(f"the weights of a mix are from 0, and one is above 0; found {weights}")
    return _Mix(stream, weights, children, total=total)


def independent(stream: Stream, keys: Callable[[], str | None], child: Source) -> Generator:
    """Gives each operation of `child` a key, and chooses the key first. The child can see it in `Stream.key`.

    Args:
        stream: The stream of the operations.
        keys: Chooses the key of the next operation: `KeysInTurn`, or a function that draws from the stream.
        child: The operations, without keys.
    """
    return _Independent(stream, keys, child)


class KeysInTurn:
    """The keys `k0`, `k1`, ... or with other names, one after the other, each for a limited number of operations.

    As many streams share a key as the number of operations allows. They divide its operations in advance, so a stream goes on
    to the next key of its group without waiting for the others. Neighbouring streams are in one group, since they use different
    nodes.

    Attributes:
        group: The number of the stream's group.
        groups: The number of groups.
        share: The number of operations of a stream on each key.
        place: The place of the latest operation among those of its stream on its key, from 0; -1 before the first one.
    """

    __slots__ = ("_count", "_first", "_prefix", "group", "groups", "place", "share")

    def __init__(self, stream: Stream, ops_per_key: int, *, prefix: str = "k", first: int = 0) -> None:
        """Makes the keys.

        Args:
            stream: The stream that uses them.
            ops_per_key: The largest number of operations on a key.
            prefix: What each key begins with.
            first: The number of the first key.
        """
        self._prefix, self._first = prefix, first
        size = min(stream.streams, max(1, ops_per_key // MIN_OPS_PER_STREAM))
        self.groups = -(-stream.streams // size)
        self.group = stream.number * self.groups // stream.streams
        self.share = max(1, ops_per_key // (-(-stream.streams // self.groups)))
        self.place = -1
        self._count = 0

    def __call__(self) -> str:
        """Returns the key of the next operation."""
        turn, self.place = divmod(self._count, self.share)
        self._count += 1
        return f"{self._prefix}{self._first + turn * self.groups + self.group}"


def on_update(update: Callable[[Op], None], child: Source) -> Generator:
    """Answers as `child` does, and calls a function with each event. So an operation can depend on answers."""
    return _OnUpdate(update, child)


def until_ok(invocations: Iterable[Invocation], *, attempts: int = ATTEMPTS) -> Generator:
    """Repeats each operation until it succeeds, at most `attempts` times. The workers share the operations."""
    return _UntilOk(invocations, attempts)


def limit(count: int, child: Source) -> Generator:
    """Answers at most `count` operations of `child`, for all its workers together."""
    return _Limit(count, child)


def time_limit(seconds: float, child: Source) -> Generator:
    """Answers as `child` does until `seconds` after the first question. Operations in flight may end later."""
    return _TimeLimit(round(seconds * NS_PER_S), child)


def phases(*children: Source) -> Generator:
    """Answers from one child after the other. A child begins when the one before has ended for all workers.

    A child has ended when it has no more operation for any worker, and all its operations are complete.
    """
    return _Phases(children)


def sleep(seconds: float) -> Generator:
    """Answers `Later` until `seconds` after the first question, and then ends."""
    return time_limit(seconds, lambda _: Later(_NEVER_NS))


def stagger(mean_gap_s: float, child: Source, *, seed: int, name: str = "stagger") -> Generator:
    """Spaces the operations of `child` by random gaps, over all its workers together.

    A gap counts from the time at which the last operation was due, so a small delay does not slow the pace. After a delay
    longer than a gap, at most one operation follows at once, and never a burst.

    Args:
        mean_gap_s: The mean gap; a gap is uniform between 0 and twice as much.
        child: The operations.
        seed: The run's root seed.
        name: The name of the random stream of the gaps.

    Raises:
        InputError: The mean gap is not above 0.
    """
    if not mean_gap_s > 0:
        raise InputError(f"the gap of a stagger must be above 0 seconds, not {mean_gap_s}")
    draws = random_stream(seed, name)
    return _Stagger(lambda: draws.uniform(0, 2 * mean_gap_s), child)


def reserve(*ranges: tuple[int, Source], default: Source) -> Generator:
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


class _Leaf:
    """An operation that is repeated, or a function. It needs no events."""

    __slots__ = ("ask",)

    def __init__(self, source: Invocation | Callable[[Asker], Answer]) -> None:
        self.ask: Callable[[Asker], Answer] = (lambda _: source) if isinstance(source, Invocation) else source

    def update(self, event: Op) -> None:
        """Does nothing."""


class _Over:
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
                self._children.append(_Leaf(source))
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


class _EachStream(_Over):
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


class _Mix(_Over):
    def __init__(self, stream: Stream, weights: list[float], children: Sequence[Source], *, total: float) -> None:
        super().__init__(*children)
        self._random = stream.random
        self._weights = weights
        self._asks = [child.ask for child in self._children]
        self._below = _bounds(weights, total)
        self._drawn: int | None = None  # it stays until its child has an operation

    def ask(self, asker: Asker) -> Answer:
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


class _Independent(_Over):
    def __init__(self, stream: Stream, keys: Callable[[], str | None], child: Source) -> None:
        super().__init__(child)
        self._stream = stream
        self._keys = keys
        self._ask = self._children[0].ask
        self._waits = False  # the child has a key, and no operation yet

    def ask(self, asker: Asker) -> Answer:
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


class _OnUpdate(_Over):
    def __init__(self, update: Callable[[Op], None], child: Source) -> None:
        super().__init__(child)
        self.ask = self._children[0].ask
        self.update = update if self.deaf else _telling([update, self.update])
        self.deaf = False


class _UntilOk:
    def __init__(self, invocations: Iterable[Invocation], attempts: int) -> None:
        self._due = deque((invocation, attempts) for invocation in invocations)
        self._in_flight: dict[Process, tuple[Invocation, int]] = {}

    def ask(self, asker: Asker) -> Answer:
        if not self._due:
            return Later() if self._in_flight else None
        invocation, attempts = self._due.popleft()
        self._in_flight[asker.process] = invocation, attempts - 1
        return invocation

    def update(self, event: Op) -> None:
        if event.type is OpType.INVOKE or event.process not in self._in_flight:
            return
        invocation, attempts = self._in_flight.pop(event.process)
        if event.type is not OpType.OK and attempts:
            self._due.append((invocation, attempts))


class _Limit(_Over):
    def __init__(self, count: int, child: Source) -> None:
        super().__init__(child)
        self._left = count
        self._ask = self._children[0].ask

    def ask(self, asker: Asker) -> Answer:
        if self._left <= 0:
            return None
        answer = self._ask(asker)
        if type(answer) is Invocation:
            self._left -= 1
        return answer


class _TimeLimit(_Over):
    def __init__(self, limit_ns: int, child: Source) -> None:
        super().__init__(child)
        self._limit_ns = limit_ns
        self._deadline_ns: int | None = None
        self._ask = self._children[0].ask

    def ask(self, asker: Asker) -> Answer:
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


class _Phases(_Over):
    def __init__(self, children: Sequence[Source]) -> None:
        super().__init__(*children)
        self.divides = True
        self.deaf = False
        self.update = _telling([self._ends, self.update])
        self._coming = deque(self._children)
        self._ended: set[int] = set()
        self._in_flight: set[Process] = set()

    def ask(self, asker: Asker) -> Answer:
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


class _Stagger(_Over):
    def __init__(self, draw_gap_s: Callable[[], float], child: Source) -> None:
        super().__init__(child)
        self._draw_gap_s = draw_gap_s
        self._due_ns: int | None = None

    def ask(self, asker: Asker) -> Answer:
        if self._due_ns is None:
            self._due_ns = asker.now_ns
        if asker.now_ns < self._due_ns:
            return Later(self._due_ns)
        answer = self._children[0].ask(asker)
        if isinstance(answer, Invocation):
            self._due_ns = max(self._due_ns + round(self._draw_gap_s() * NS_PER_S), asker.now_ns)
        return answer


class _Reserve(_Over):
    def __init__(self, ranges: Sequence[tuple[int, Source]], default: Source) -> None:
        super().__init__(*(child for _, child in ranges), default)
        self.divides = True
        self._ends = list(accumulate(count for count, _ in ranges))
        # For each set of workers (usually one, of all workers): worker to its child, and to the workers of that child.
        self._parts: dict[frozenset[int], dict[int, tuple[Generator, frozenset[int]]]] = {}

    def ask(self, asker: Asker) -> Answer:
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
