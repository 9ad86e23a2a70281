"""The lock workload: its operations and its checks."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from checker.columns import of_operations
from checker.judging import part_of
from workloads.finals import keys_of
from workloads.lock.generators import ATTEMPTS, LockGenerator, OnceEach
from workloads.lock.judge import find
from workloads.lock.judgement import judgement
from workloads.lock.options import LockOptions
from workloads.lock.parts import final_acquires
from workloads.lock.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.columns import Columns
    from checker.judging import Judgement
    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed

PAUSE_S = 0.2


class LockWorkload:
    """Acquires and releases over independent locks; see `harness.workload.Workload` and `checker.judging.Judge`.

    Attributes:
        name: `lock`.
        summary: A description in one line.
        Options: Its options.
        functions: Acquire and release.
        model: None; see `judge`.
    """

    name = "lock"
    summary = "Acquires and releases of independent locks, checked for mutual exclusion and for growing fencing tokens."
    Options = LockOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "acquire": "null -> the fencing token, or null if the system has none; fails if the lock is held",
            "release": "the token of the acquire, or null -> the same; fails if the process does not hold the lock",
        }
    )
    model = None

    def __init__(self, options: LockOptions | None = None) -> None:
        self._options = options or LockOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        return LockGenerator(self._options, seed=seed, streams=streams)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first turns of each stream as JSON-like data.

        The releases of acquired locks are missing, because only the run knows which acquires succeed.
        """
        return [self._describe(seed, number, streams, count) for number in range(streams)]

    def _describe(self, seed: int, number: int, streams: int, count: int) -> Value:
        stream = Stream(self._options, seed=seed, number=number, streams=streams)
        operations: list[dict[str, Value]] = []
        for turn in (stream.next() for _ in range(count)):
            operation: dict[str, Value] = {"f": turn.f, "key": turn.key, "value": None}
            if turn.f == "acquire":
                operation["hold_ms"] = turn.hold_ms
            operations.append(operation)
        return {"stream": number, "operations": operations}

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns one acquire and one release of every lock in the history. The retries wait for the end of leases."""
        lease_s = self._options.lease_s
        return OnceEach(keys_of(history), pause_s=PAUSE_S if lease_s is None else lease_s / (ATTEMPTS - 2))

    def judge(self, history: Columns) -> Judgement:
        """Decides one lock; see `workloads.lock.judge`.

        Raises:
            InputError: A lock has no such operation.
        """
        return judgement(history, find(history, lease_s=self._options.lease_s, sessions=self._options.sessions))

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the parts `lock` and, if the test has them, `final-reads`."""
        columns = of_operations(operations)
        parts = [part_of(self, columns, operation=operations.__getitem__, faults=observed.faults)]
        if observed.final_reads is not None:
            parts.append(final_acquires(operations, observed.final_reads))
        return parts
