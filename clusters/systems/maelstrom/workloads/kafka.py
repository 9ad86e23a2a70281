"""The workload kafka: logs with offsets, and the offsets up to which clients have read them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from clusters.systems.maelstrom.workloads.keys import NUMBERED
from harness.combinators import phases, until_ok
from harness.declare import option, with_default
from harness.errors import InputError
from harness.op import FINAL_PHASE, Invocation
from workloads.log.whole import final_ranges
from workloads.log.workload import LogOptions, LogWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Source, Stream
    from harness.final_reads import FinalReads
    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Operation
    from harness.verdict import Part
    from workloads.log.whole import Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions(LogOptions):
    """The options of the workload kafka."""

    keys: int = option(4, "The number of independent logs.", low=2, high=1000)
    linearizable: bool = with_default(LogOptions, "linearizable", default=False)
    commit_share: float = option(
        0.05, "The share of operations that commit the highest offset that the process has read.", low=0, high=1
    )
    list_share: float = option(0.05, "The share of operations that list the committed offset of a log.", low=0, high=1)
    fresh_commits: bool = option(
        default=True,
        help="Each list must show what was committed before it began; without it, only lists after the last commit must.",
        judges=True,
    )

    strict_commits: bool = option(
        default=False,
        help="A list of committed offsets that contradicts commits is a violation. Without it, it is a warning: Maelstrom "
        "does not look at it.",
        judges=True,
    )

    def __post_init__(self) -> None:
        LogOptions.__post_init__(self)
        if self.read_share + self.commit_share + self.list_share >= 1:
            raise InputError(
                "the kafka workload needs sends; choose shares of reads, commits and lists that are below 1 in all"
            )


class KafkaWorkload(LogWorkload):
    """Logs with offsets, and committed offsets; see `harness.workload.Workload` and `checker.judging.Judge`."""

    name = "kafka"
    summary = "Sends to independent logs, polls, and committed offsets; the checker finds lost, moved and unexpected messages."
    Options = KafkaOptions
    key_prefix = NUMBERED
    options: KafkaOptions
    functions = MappingProxyType(
        {
            **LogWorkload.functions,
            "commit": "an offset up to which a client has read -> the same",
            "list": "null -> the committed offset, or null",
        }
    )

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:
        """Returns reads that cover every log, and then a list of each log of which a client has committed an offset."""
        keys = dict.fromkeys(op.key for op in history if op.f == "commit")
        lists = until_ok(Invocation("list", None, key, FINAL_PHASE) for key in keys)
        return phases(LogWorkload.final_generator(self, history=history, node=node), lists)

    def final_part(self, operations: Sequence[Operation], reads: FinalReads) -> Part:
        """Returns the part `final-reads`, with the ranges of offsets."""
        return final_ranges([operation for operation in operations if operation.f in LogWorkload.functions], reads)

    def judge(self, history: Columns) -> Judgement:
        """Decides one log and its committed offset; see `clusters.systems.maelstrom.workloads.kafka_judge`.

        Raises:
            InputError: The workload has no such operation.
        """
        from clusters.systems.maelstrom.workloads.kafka_judge import judge_kafka  # noqa: PLC0415 - `--help` needs no judge

        options = self.options
        return judge_kafka(
            history,
            linearizable=options.linearizable,
            follow=options.follow,
            fresh=options.fresh_commits,
            strict=options.strict_commits,
        )

    def _further(self, stream: Stream, offsets: Offsets) -> Sequence[tuple[float, Source]]:
        def commit(asker: Asker) -> Invocation:
            """Returns a list if the process has read nothing, as a client does that looks for its place."""
            stream.skip(3)
            if asker.preview:
                return Invocation("commit", "read")
            offset = offsets.last_read(asker.process, stream.key)
            return Invocation("list") if offset is None else Invocation("commit", offset)

        def list_committed(_: Asker) -> Invocation:
            stream.skip(3)
            return Invocation("list")

        return (self.options.commit_share, commit), (self.options.list_share, list_committed)
