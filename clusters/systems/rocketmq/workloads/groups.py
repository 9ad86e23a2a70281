"""The base class of the workloads on broker groups. They use new groups one after the other, and one model checks all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from clusters.systems.rocketmq.workloads.model import BrokerGroup
from clusters.systems.rocketmq.workloads.replicas import replicas_equal
from harness.declare import option
from workloads.base import BaseWorkload, OptionsT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.op import Operation, Value
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

HALF: Final = 0.5
_SHARES: Final[Mapping[str, str]] = {
    "heartbeat": "that are heartbeats",
    "leave": "that end the heartbeats of a broker",
    "apply": "that request an id",
    "register": "that register the address of a broker",
    "elect": "that are elections",
    "next": "that read the next id",
    "replica": "that read the master and the sync set",
    "state": "that read the whole group",
}


def share_option(f: str, default: float, *, low: float = 0, more: str = "") -> Any:
    """Returns the option for the share of a function; the name of its field is `F_share`."""
    return option(default, f"The share of operations {_SHARES[f]}{more}.", low=low, high=0.9)


def ops_per_group_option(default: int) -> Any:
    """Returns the option for the length of a group's life."""
    return option(
        default,
        "The maximum number of operations on each broker group; one group follows the other.",
        low=1,
        high=1_000_000_000,
    )


class GroupWorkload(BaseWorkload[OptionsT]):
    """A workload on broker groups; see `harness.workload.Workload`.

    Attributes:
        model: The place of the model, with which `labrys check` decides each key.
        rules: The model itself.
        rest: The parts of the verdict that need no search. Some show whether the run tested anything.
    """

    model = "clusters.systems.rocketmq.workloads.model:BrokerGroup"
    rules: ClassVar[BrokerGroup] = BrokerGroup()
    rest: ClassVar[Sequence[Callable[[Sequence[Operation]], Part]]]
    final = ("next", "state")

    def parts(self, operations: Sequence[Operation], observed: Observed) -> list[Part]:
        """Returns the part `linearizable`, and those of `rest`."""
        from checker.linearizable import linearizability  # noqa: PLC0415 - `--help` needs no judge

        return [*linearizability(self.rules, operations, observed.faults), *(part(operations) for part in self.rest)]

    def check(self, operations: Sequence[Operation], observed: Observed) -> list[Part]:
        """Returns the parts of `parts` and, if the test has final reads, `final-reads` and `replicas-equal`."""
        parts, reads = super().check(operations, observed), observed.final_reads
        if (
            reads is not None and len(reads.through) + len(reads.left_out) != 1
        ):  # with one node there is only one replica
            parts.append(replicas_equal(operations, reads))
        return parts


def apply_of(broker: int, check: int) -> Value:
    """Returns the argument of a request for an id. The check code of a broker is `address;timestamp`."""
    return {"id": broker, "check": f"broker-{check}:10911;{check}"}


def heartbeat_of(broker: int) -> Value:
    """Returns the heartbeat of a broker without a log, since the model ignores epochs and offsets."""
    return {"id": broker, "epoch": 0, "max_offset": 0, "priority": 0}
