"""The ledger workload: appends, reads, recoveries and closes of ledgers; after healing, a recovery and whole reads of each."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.combinators import each_stream, independent, mix, on_update, phases, until_ok
from harness.declare import hold_bounds, option
from harness.op import FINAL_PHASE, Invocation, OpType
from workloads.base import JudgedWorkload
from workloads.finals import keys_of
from workloads.log.whole import Offsets, WholeLogs, final_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Stream
    from harness.final_reads import FinalReads
    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Operation
    from harness.verdict import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOptions:
    """The options of the ledger workload."""

    ledgers: int = option(3, "The number of ledgers in use at a time.", low=1, high=1000, shrinks_to=1)
    ops_per_ledger: int = option(
        200, "The operations on a ledger, after which new ones take its place.", low=1, high=1000, shrinks_to=100
    )
    read_share: float = option(0.2, "The share of operations that read a range of entries.", low=0, high=0.9)
    confirmed_share: float = option(0.1, "The share that ask for the last confirmed entry.", low=0, high=0.9)
    recover_share: float = option(0.01, "The share that recover a ledger.", low=0, high=0.9)
    close_share: float = option(0.005, "The share that close a ledger by its writer.", low=0, high=0.9)
    range_length: int = option(20, "The maximum number of entries that a read covers.", low=1, high=1000)

    def __post_init__(self) -> None:
        hold_bounds(self)


class LedgerWorkload(JudgedWorkload[LedgerOptions]):
    """Ledgers with one writer each; see `harness.workload.Workload` and `checker.judging.Judge`."""

    name = "ledger"
    summary = "Appends to ledgers with one writer each, reads, recoveries and closes, checked against BookKeeper's guarantees."
    Options = LedgerOptions
    functions = MappingProxyType(
        {
            "append": "a value, not null -> the id of its entry; the first append creates the ledger",
            "read": "[first, last] -> [[id, value], ...] of the confirmed entries from the first to the last id",
            "confirmed": "null -> the id of the last confirmed entry; -1 if there is none",
            "recover": "null -> the id of the last entry; -1 if there is none; fences the writer, and closes the ledger",
            "inspect": "null -> the metadata, the copies of its entries on all bookies, and the fences of a ledger; "
            "only after healing",
            "close": "null -> the id of the last entry; -1 if there is none; only the writer closes without a recovery",
        }
    )

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns operations on a few ledgers, which others replace after their share of operations."""
        offsets = Offsets()
        streamed = each_stream(lambda stream: self._operations(stream, offsets), seed=seed, streams=streams)
        return on_update(offsets.update, streamed)

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns a recovery of each ledger, reads that cover it, and an inspection of its copies."""
        keys = keys_of(history)
        recoveries = (Invocation("recover", None, key, FINAL_PHASE) for key in keys)
        inspections = (Invocation("inspect", None, key, FINAL_PHASE) for key in keys)
        return phases(until_ok(recoveries), WholeLogs(history, keys), until_ok(inspections))

    def final_part(self, operations: Sequence[Operation], reads: FinalReads) -> Part:
        """Returns the part `final-reads`, with the ranges of entries of the ledgers with an acknowledged append."""
        promised = {
            operation.key for operation in operations if operation.f == "append" and operation.type is OpType.OK
        }
        asked = [operation for operation in operations if operation.f == "read"]
        return final_ranges([operation for operation in asked if operation.key in promised or not promised], reads)

    def judge(self, history: Columns) -> Judgement:
        """Decides one ledger; see `workloads.ledger.judge`.

        Raises:
            InputError: The workload has no such operation.
        """
        from workloads.ledger.judge import judge_ledger  # noqa: PLC0415 - `--help` needs no judge

        return judge_ledger(history)

    def _operations(self, stream: Stream, offsets: Offsets) -> Generator:
        options = self.options
        share = max(1, options.ops_per_ledger * options.ledgers // stream.streams)

        def ledger() -> str:
            generation = stream.count // share
            return f"l{stream.below(options.ledgers) + generation * options.ledgers}"

        def append(_: Asker) -> Invocation:
            stream.skip(2)
            return Invocation("append", stream.unique(), stream.key)

        def read(asker: Asker) -> Invocation:
            back, length = stream.below(100), 1 + stream.below(options.range_length)
            first = 0 if asker.preview else offsets.before(stream.key, back)
            return Invocation("read", [first, first + length - 1], stream.key)

        def plain(f: str) -> Callable[[Asker], Invocation]:
            def make(_: Asker) -> Invocation:
                stream.skip(2)
                return Invocation(f, None, stream.key)

            return make

        mixed = mix(
            stream,
            (options.read_share, read),
            (options.confirmed_share, plain("confirmed")),
            (options.recover_share, plain("recover")),
            (options.close_share, plain("close")),
            rest=append,
        )
        return independent(stream, ledger, mixed)
