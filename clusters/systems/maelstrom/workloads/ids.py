"""The workload unique-ids: no two answers may be the same identifier."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.combinators import each_stream
from harness.declare import NoOptions
from harness.op import Invocation
from workloads.base import JudgedWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Source, Stream
    from harness.generator import Generator


class UniqueIdsWorkload(JudgedWorkload[NoOptions]):
    """Identifiers; see `harness.workload.Workload`, and `checker.judging.Judge` for the judge."""

    name = "unique-ids"
    summary = "Clients ask for identifiers, and no two answers may be the same."
    Options = NoOptions
    functions = MappingProxyType({"generate": "null -> an identifier, any JSON value"})
    final = ()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns requests for identifiers."""

        def operations(_: Stream) -> Source:
            return Invocation("generate")

        return each_stream(operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Looks for an identifier that was given twice."""
        from clusters.systems.maelstrom.workloads.ids_judge import judge  # noqa: PLC0415 - `--help` needs no judge

        return judge(history)
