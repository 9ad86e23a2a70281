"""The base class of the workloads on broker groups. They use new groups one after the other, and one model checks all."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar, Protocol

from checker.linearizable import linearizability
from harness.combinators import from_function
from harness.op import Invocation
from workloads.controller.model import BrokerGroup
from workloads.controller.replicas import replicas_equal
from workloads.finals import UntilRead, final_reads, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed

# The functions of the clients, with arguments and results.
FUNCTIONS: Mapping[str, str] = {
    "apply": "{id, check} -> {code}; code 0: the broker with this check code owns the id, 2014: another one does",
    "elect": "{id, designate} -> {code, ...}; code 0: this broker is master, in a new epoch; 2011, 2012: it is not",
    "register": "{id, address} -> {code, ...}; code 0 with the sync set, and with the master if it is alive",
    "alter": (
        "{master, master_epoch, sync_set, sync_epoch} -> {code, ...}; code 0: the sync set is changed, "
        "2000, 2001, 2002: the master or an epoch differs"
    ),
    "heartbeat": "{id, epoch, max_offset, priority} -> {code}; the controllers that it reaches regard the broker as alive",
    "leave": "{id} -> {code}; closes the connections of the broker's heartbeats",
    "next": "null -> {code, next}; the next free id",
    "replica": "null -> {code, ...}; master and sync set of the group; code 2008: there is no group",
    "state": "null -> {code, known, ...}; the whole group",
}


class Draws(Protocol):
    """The operations of one stream."""

    def next(self) -> Invocation:
        """Draws the next operation."""
        ...


class GroupWorkload(abc.ABC):
    """A workload on broker groups; see `harness.workload.Workload`.

    Attributes:
        model: The place of the model, with which `labrys check` decides each key.
        rules: The model itself.
    """

    model: ClassVar[str | None] = "workloads.controller.model:BrokerGroup"
    rules: ClassVar[BrokerGroup] = BrokerGroup()

    @abc.abstractmethod
    def stream(self, *, seed: int, number: int, streams: int) -> Draws:
        """Returns the operations of one stream, from the first one on."""

    @abc.abstractmethod
    def parts(self, operations: Sequence[Operation]) -> Sequence[Part]:
        """Returns the parts of the verdict that need no search. Some show whether the run tested anything."""

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        draws = [self.stream(seed=seed, number=number, streams=streams) for number in range(streams)]

        def next_operation(asker: Asker) -> Invocation:
            return draws[asker.worker].next()

        return from_function(next_operation)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream as JSON-like data."""
        return [
            {"stream": number, "operations": self._first(self.stream(seed=seed, number=number, streams=streams), count)}
            for number in range(streams)
        ]

    def described(self, invocation: Invocation) -> Value:
        """Returns the argument of an operation as far as it is known before the run."""
        return invocation.value

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns reads of the next id and of the whole state of every group in the history."""
        return UntilRead(Invocation(f, None, key) for key in keys_of(history) for f in ("next", "state"))

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the part `linearizable`, those of `parts`, and those of the final reads if the test asked for them.

        Those of the final reads are `final-reads` and, with more than one node, `replicas-equal`.
        """
        found = [*linearizability(self.rules, operations, observed.faults), *self.parts(operations)]
        if observed.final_reads is not None:
            found.append(final_reads(operations, observed.final_reads))
            if (
                len(observed.final_reads.through) + len(observed.final_reads.left_out) != 1
            ):  # with one node there is only one replica
                found.append(replicas_equal(operations, observed.final_reads))
        return found

    def _first(self, draws: Draws, count: int) -> Value:
        operations = (draws.next() for _ in range(count))
        return [{"f": each.f, "key": each.key, "value": self.described(each)} for each in operations]
