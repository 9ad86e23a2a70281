"""The workloads list-append and rw-register: transactions over several keys, checked by their dependencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from checker.consistency import DEFAULT, Question, find, find_anomalies
from checker.formats.values import initial_value
from checker.values import json_text
from harness.combinators import each_stream, until_ok
from harness.declare import hold_bounds, option
from harness.errors import InputError
from harness.op import FINAL_PHASE, NEMESIS, Invocation, OpType
from workloads.base import JudgedWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Source, Stream
    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Value

TRANSACTION: Final = "txn"
READ: Final = "r"
APPEND: Final = "append"
WRITE: Final = "w"
READS_AT_ONCE: Final = 8  # of the final reads, in one transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOptions:
    """The options that the workloads share: the model, and what is assumed of each key alone."""

    consistency_model: str = option(
        DEFAULT,
        "The consistency model that the transactions must have, by its name or an alias, e.g. serializable or PL-3.",
        metavar="MODEL",
        judges=True,
    )
    anomalies: str = option(
        "",
        "Anomalies that the transactions must not have either, with commas between them, e.g. lost-update,G1c-process.",
        metavar="NAMES",
        judges=True,
    )
    sequential_keys: bool = option(
        default=False, help="Each key alone is sequentially consistent: versions follow each process.", judges=True
    )
    linearizable_keys: bool = option(
        default=False, help="Each key alone is linearizable: versions follow real time.", judges=True
    )
    keys: int = option(10, "The number of keys that are in use at a time.", low=1, high=10_000, shrinks_to=1)
    max_length: int = option(
        4, "The largest number of micro-operations of a transaction; the smallest is 1.", low=1, high=100
    )
    read_share: float = option(0.5, "The share of micro-operations that are reads.", low=0, high=1)
    ops_per_key: int = option(
        100,
        "After so many transactions of a client, new keys take the place of all keys.",
        low=1,
        high=1_000_000_000,
    )

    def __post_init__(self) -> None:
        hold_bounds(self)
        find(self.consistency_model)
        find_anomalies(self.anomalies)
        if not 0 < self.read_share < 1:
            raise InputError(
                f"expected a share of reads between 0 and 1, not {self.read_share}; without reads, or without appends, nothing "
                "is tested"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAppendOptions(TransactionOptions):
    """The options of the workload list-append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RwRegisterOptions(TransactionOptions):
    """The options of the workload rw-register: its initial value, and from what the order of the versions of a key follows."""

    initial: str = option(
        "nil", "The value of each register at the beginning, in EDN, e.g. 0.", metavar="EDN", judges=True
    )

    writes_follow_reads: bool = option(
        default=False,
        help="A transaction that reads a version and writes another one shows that the second follows the first.",
        judges=True,
    )
    transaction_order: bool = option(
        default=False,
        help="Versions follow the order in which the system says that it committed the transactions, if its client records it.",
        judges=True,
    )
    atomic_visibility: bool = option(
        default=False,
        help="A transaction sees all writes of those that it reads from, so of the versions that it saw, it read the last.",
        judges=True,
    )

    def __post_init__(self) -> None:
        super(RwRegisterOptions, self).__post_init__()  # slots replace the class, so `super()` would name the old one
        initial_value(self.initial)


OptionsT = TypeVar("OptionsT", bound=TransactionOptions)


class _TransactionWorkload(JudgedWorkload[OptionsT]):
    """Transactions over several keys; see `harness.workload.Workload` and `checker.judging.Judge`.

    A key is drawn from an exponential distribution, as in Jepsen: each key is half as frequent as the one before it.

    Attributes:
        write: The micro-operation that writes.
    """

    write: ClassVar[str]

    def key_of(self, number: int) -> str | int:
        """Returns the key with a number."""
        return f"k{number}"

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns transactions."""
        return each_stream(self._transactions, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Decides the transactions of a history."""
        from checker.transactions.judge import judge  # noqa: PLC0415 - `--help` needs no judge

        asked = self.question()
        return judge(
            history,
            workload=asked.workload,
            model=asked.model,
            sources=asked.sources,
            anomalies=asked.anomalies,
            initial=asked.initial,
        )

    def question(self) -> Question:
        """Returns what the workload asks about its transactions."""
        return Question(
            workload=str(self.transactions),
            model=find(self.options.consistency_model).name,
            sources=tuple(self._sources()),
            anomalies=find_anomalies(self.options.anomalies),
            initial=self._initial(),
        )

    def _sources(self) -> list[str]:
        """Returns what the order of the versions follows from, besides the reads."""
        options = self.options
        assumed = {"sequential-keys": options.sequential_keys, "linearizable-keys": options.linearizable_keys}
        return [name for name, is_assumed in assumed.items() if is_assumed]

    def _initial(self) -> str | None:
        """Returns the initial value in canonical JSON; None: nil, or an empty list."""
        return None

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns transactions that read every key of the history; each is repeated until it succeeds."""
        keys = sorted({part[1] for op in history for part in _requested(op)}, key=str)
        groups = (keys[at : at + READS_AT_ONCE] for at in range(0, len(keys), READS_AT_ONCE))
        return until_ok(
            Invocation(TRANSACTION, [[READ, key, None] for key in some], None, FINAL_PHASE) for some in groups
        )

    def _transactions(self, stream: Stream) -> Source:
        options = self.options

        def transaction(_: Asker) -> Invocation:
            first = stream.count // options.ops_per_key * options.keys
            value = (stream.unique() - 1) * options.max_length
            length = 1 + stream.below(options.max_length)
            drawn: list[Value] = []
            for index in range(options.max_length):
                is_read, at = stream.random() < options.read_share, stream.random()
                key = self.key_of(first + _exponential(at, options.keys))
                drawn.append([READ, key, None] if is_read else [self.write, key, value + index + 1])
            return Invocation(TRANSACTION, drawn[:length])

        return transaction


class ListAppendWorkload(_TransactionWorkload[ListAppendOptions]):
    """Reads and appends."""

    name = transactions = "list-append"
    summary = "Transactions that read and append to several lists, checked for the anomalies of a consistency model."
    Options = ListAppendOptions
    functions = MappingProxyType(
        {
            TRANSACTION: f"a list of [{READ}, key, null] and [{APPEND}, key, element] -> the same, with the list that each "
            "read returned in place of its null",
        }
    )
    write = APPEND


class RwRegisterWorkload(_TransactionWorkload[RwRegisterOptions]):
    """Reads and writes."""

    name = transactions = "rw-register"
    summary = "Transactions that read and write several registers, checked for the anomalies of a consistency model."
    Options = RwRegisterOptions
    functions = MappingProxyType(
        {
            TRANSACTION: f"a list of [{READ}, key, null] and [{WRITE}, key, value] -> the same, with the value that each read "
            "returned in place of its null",
        }
    )
    write = WRITE

    def _initial(self) -> str | None:
        value = initial_value(self.options.initial)
        return None if value is None else json_text(value)

    def _sources(self) -> list[str]:
        options = self.options
        return [
            *(["writes-follow-reads"] if options.writes_follow_reads else []),
            *super()._sources(),
            *(["transaction-order"] if options.transaction_order else []),
            *(["atomic-visibility"] if options.atomic_visibility else []),
        ]


def _requested(op: Op) -> list[list[Value]]:
    """Returns the micro-operations that a client requested."""
    if op.process == NEMESIS or op.type is not OpType.INVOKE or not isinstance(op.value, list):
        return []
    return op.value


def _exponential(at: float, count: int) -> int:
    """Returns a place below a count; each place is half as frequent as the one before it.

    Args:
        at: A number from 0 to below 1.
        count: The number of places.
    """
    whole = 1 - 2.0**-count
    return min(count - 1, int(-math.log2(1 - at * whole)))
