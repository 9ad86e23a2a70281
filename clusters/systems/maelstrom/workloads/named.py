"""Workloads of Labrys under the names of Maelstrom, with the defaults that fit what Maelstrom asks of a program.

Their keys are those that the programs get, so that a verdict names them as the programs and their messages do.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusters.systems.maelstrom.workloads.keys import NUMBERED
from harness.declare import with_default
from workloads.counter.workload import CounterOptions, CounterWorkload
from workloads.register.workload import RegisterWorkload
from workloads.set.workload import SetOptions, SetWorkload
from workloads.transactions.workload import ListAppendWorkload, RwRegisterWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowOnlyOptions(SetOptions):
    """The options of the workloads broadcast and g-set."""

    reads_every: int = with_default(SetOptions, "reads_every", default=2)
    linearizable: bool = with_default(SetOptions, "linearizable", default=False)
    exact_reads: bool = with_default(SetOptions, "exact_reads", default=False)


class BroadcastWorkload(SetWorkload):
    """Messages that must reach every node."""

    name = "broadcast"
    summary = "Messages to one node each, which all nodes must know in the end; the checker finds lost ones."
    Options = GrowOnlyOptions


class GSetWorkload(SetWorkload):
    """A set that grows."""

    name = "g-set"
    summary = "Adds to one node each, which all nodes must know in the end; the checker finds lost elements."
    Options = GrowOnlyOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PNCounterOptions(CounterOptions):
    """The options of the workload pn-counter."""

    rest: float = with_default(CounterOptions, "rest", default=5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GCounterOptions(PNCounterOptions):
    """The options of the workload g-counter."""

    negative_share: float = with_default(CounterOptions, "negative_share", default=0.0)


class PNCounterWorkload(CounterWorkload):
    """A counter whose nodes agree in the end."""

    name = "pn-counter"
    summary = "Adds of positive and negative amounts to one node each; in the end, each node must know the sum."
    Options = PNCounterOptions


class GCounterWorkload(CounterWorkload):
    """A counter that grows, and whose nodes agree in the end."""

    name = "g-counter"
    summary = "Adds of positive amounts to one node each; in the end, each node must know the sum."
    Options = GCounterOptions


class LinKvWorkload(RegisterWorkload):
    """Linearizable registers."""

    name = "lin-kv"
    summary = "Reads, writes and compare-and-sets on independent registers, checked for linearizability, as Maelstrom has them."
    hot_prefix = key_prefix = NUMBERED


class TxnListAppendWorkload(ListAppendWorkload):
    """Transactions over lists."""

    name = "txn-list-append"
    summary = "Transactions that read and append to several lists, checked for the anomalies of a consistency model."

    def key_of(self, number: int) -> int:
        """Returns the number as the key."""
        return number


class TxnRwRegisterWorkload(RwRegisterWorkload):
    """Transactions over registers."""

    name = "txn-rw-register"
    summary = "Transactions that read and write several registers, checked for the anomalies of a consistency model."

    def key_of(self, number: int) -> int:
        """Returns the number as the key."""
        return number
