"""The lock workload: acquires, and releases after a while; after healing, one acquire of each lock.

With a resource, the holders write to it; see `workloads.lock.resource`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from harness.combinators import each_stream, independent, mix
from harness.declare import hold_bounds, option
from harness.op import Invocation
from workloads.base import JudgedWorkload
from workloads.finals import keys_of
from workloads.lock.holds import ATTEMPTS, WRITES, Holds, OnceEach, Releasing, final_acquires
from workloads.lock.resource import Resource, Takes, holders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.client import ClientFactory
    from harness.combinators import Stream
    from harness.final_reads import FinalReads
    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Operation
    from harness.verdict import Part

PAUSE_S: Final = 1.2  # so that the attempts outlast the sessions of clients that are gone: 4 s at most, by default


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOptions:
    """The options of the lock workload."""

    lease_s: float | None = option(
        None,
        "The lease of a lock in seconds, from the request on.  [default: locks have no lease]",
        low=0,
        high=86_400,
        above=True,
        judges=True,
    )
    sessions: bool = option(
        default=True,
        help="The system frees the locks of a client whose connection ends.",
        judges=True,
    )
    locks: int = option(
        3, "The number of locks in use at a time; all clients use each of them.", low=1, high=10_000, shrinks_to=1
    )
    ops_per_lock: int | None = option(
        None,
        "The approximate number of acquires of a lock before a new lock replaces it; for systems that never free the lock of "
        "a dead client.",
        low=1,
        high=1_000_000_000,
    )
    hold_ms: float = option(20.0, "The mean time in milliseconds that a client holds a lock.", low=0, high=3_600_000)
    stray_share: float = option(
        0.0,
        "The share of turns in which a client releases a lock that it does not hold; the release must fail.",
        low=0,
        high=0.9,
    )
    resource: Takes = option(
        Takes.NONE,
        "The resource on the control node that a holder writes to at the beginning and at the end of its hold. all: it takes "
        "every write. fenced: it refuses a fencing token that is older than the newest one. none: holders write nothing.",
    )

    def __post_init__(self) -> None:
        hold_bounds(self)


class LockWorkload(JudgedWorkload[LockOptions]):
    """Acquires and releases over independent locks; see `harness.workload.Workload` and `checker.judging.Judge`."""

    name = "lock"
    summary = "Acquires and releases of independent locks, checked for mutual exclusion and for growing fencing tokens."
    Options = LockOptions
    functions = MappingProxyType(
        {
            "acquire": "null -> the fencing token, or null if the system has none; fails if the lock is held",
            "release": "the token of the acquire, or null -> the same; fails if the process does not hold the lock",
            "write": "the token of the acquire, or null -> the number of the write; Labrys carries it out on its own resource",
        }
    )

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns acquires and, after each success, the writes and the release by the same process."""
        holds = Holds(writes=0 if self.options.resource is Takes.NONE else WRITES)
        return Releasing(holds, each_stream(lambda stream: self._operations(stream, holds), seed=seed, streams=streams))

    def clients(self, system: ClientFactory) -> ClientFactory:
        """Returns clients that write to the resource of this run, if there is one; see `harness.workload.clients_of`."""
        takes = self.options.resource
        return system if takes is Takes.NONE else holders(system, Resource(fenced=takes is Takes.FENCED))

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns one acquire and one release of every lock in the history. The retries outlast leases and sessions."""
        lease_s = self.options.lease_s
        return OnceEach(keys_of(history), pause_s=PAUSE_S if lease_s is None else lease_s / (ATTEMPTS - 2))

    def final_part(self, operations: Sequence[Operation], reads: FinalReads) -> Part:
        """Returns the part `final-reads`, about the locks that could be acquired."""
        return final_acquires(operations, reads)

    def judge(self, history: Columns) -> Judgement:
        """Decides one lock; see `workloads.lock.judge`.

        Raises:
            InputError: A lock has no such operation.
        """
        from workloads.lock.judge import find  # noqa: PLC0415 - `--help` needs no judge
        from workloads.lock.judgement import judgement  # noqa: PLC0415

        return judgement(history, find(history, lease_s=self.options.lease_s, sessions=self.options.sessions))

    def _operations(self, stream: Stream, holds: Holds) -> Generator:
        options, per_lock = self.options, self.options.ops_per_lock
        # All streams use the same locks, so that they contend. Each goes to new locks after its share of turns.
        share = None if per_lock is None else max(1, per_lock * options.locks // stream.streams)

        def lock() -> str:
            generation = 0 if share is None else stream.count // share
            return f"l{stream.below(options.locks) + generation * options.locks}"

        def acquire(asker: Asker) -> Invocation:
            hold_ms = 2 * stream.random() * options.hold_ms
            holds.plan(asker.process, hold_ms)
            return Invocation("acquire", {"hold_ms": hold_ms} if asker.preview else None)

        def release_of_another(_: Asker) -> Invocation:
            stream.skip(1)
            return Invocation("release")

        return independent(stream, lock, mix(stream, (options.stray_share, release_of_another), rest=acquire))
