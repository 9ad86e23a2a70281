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

from typing import TYPE_CHECKING, Final, TypeAlias

from harness.combining import (
    AtMost,
    EachStream,
    Independent,
    Mix,
    OneAfterAnother,
    OnUpdate,
    Reserve,
    Stagger,
    TimeLimit,
    UntilOk,
)
from harness.errors import InputError
from harness.generator import Later
from harness.randomness import stream as random_stream
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.generator import Answer, Asker, Generator
    from harness.op import Invocation, Op

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
    return EachStream(make, [Stream(seed=seed, number=number, streams=streams) for number in range(streams)])


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
    return Mix(stream, weights, children, total=total)


def independent(stream: Stream, keys: Callable[[], str | None], child: Source) -> Generator:
    """Gives each operation of `child` a key, and chooses the key first. The child can see it in `Stream.key`.

    Args:
        stream: The stream of the operations.
        keys: Chooses the key of the next operation: `KeysInTurn`, or a function that draws from the stream.
        child: The operations, without keys.
    """
    return Independent(stream, keys, child)


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
    return OnUpdate(update, child)


def until_ok(invocations: Iterable[Invocation], *, attempts: int = ATTEMPTS) -> Generator:
    """Repeats each operation until it succeeds, at most `attempts` times. The workers share the operations."""
    return UntilOk(invocations, attempts)


def limit(count: int, child: Source) -> Generator:
    """Answers at most `count` operations of `child`, for all its workers together."""
    return AtMost(count, child)


def time_limit(seconds: float, child: Source) -> Generator:
    """Answers as `child` does until `seconds` after the first question. Operations in flight may end later."""
    return TimeLimit(round(seconds * NS_PER_S), child)


def phases(*children: Source) -> Generator:
    """Answers from one child after the other. A child begins when the one before has ended for all workers.

    A child has ended when it has no more operation for any worker, and all its operations are complete.
    """
    return OneAfterAnother(children)


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
    return Stagger(lambda: draws.uniform(0, 2 * mean_gap_s), child)


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
    return Reserve(ranges, default)
