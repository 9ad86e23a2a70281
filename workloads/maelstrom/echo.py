"""The workload echo: each answer must be the value that was sent."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from checker.columns import OK
from checker.judging import MAX_ANOMALIES, Anomaly, Judgement, value_at
from harness.combinators import each_stream
from harness.console.documents import shown
from harness.console.plain import counted, counted_of
from harness.declare import hold_bounds, option
from harness.op import Invocation
from harness.verdict import Verdict
from workloads.base import JudgedWorkload

if TYPE_CHECKING:
    from checker.columns import Columns
    from harness.combinators import Source, Stream
    from harness.generator import Asker, Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoOptions:
    """The options of the workload echo."""

    largest: int = option(128, "The number of different values that clients send.", low=1, high=1_000_000_000)

    def __post_init__(self) -> None:
        hold_bounds(self)


class EchoWorkload(JudgedWorkload[EchoOptions]):
    """Values that come back; see `harness.workload.Workload`, and `checker.judging.Judge` for the judge."""

    name = "echo"
    summary = "Clients send values, and each answer must be the value that was sent."
    Options = EchoOptions
    functions = MappingProxyType({"echo": "any value -> the same"})
    final = ()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns values to send."""

        def operations(stream: Stream) -> Source:
            def echo(_: Asker) -> Invocation:
                return Invocation("echo", f"Please echo {stream.below(self.options.largest)}")

            return echo

        return each_stream(operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Compares each answer with what was sent."""
        answered = np.flatnonzero(history.type == OK)
        if not len(answered):
            return Judgement(verdict=Verdict.UNKNOWN, reason="No value came back, so nothing was tested.")
        sent, back = history.value.only(answered), history.result.only(answered)
        other = (sent.kind != back.kind) | (sent.first != back.first) | (sent.second != back.second)
        wrong = answered[other]
        counts = {"answers": len(answered), "wrong": len(wrong)}
        if not len(wrong):
            reason = f"All {counted(len(answered), 'answer')} are what was sent."
            return Judgement(verdict=Verdict.VALID, reason=reason, counts=counts)
        return Judgement(
            verdict=Verdict.INVALID,
            reason=f"{counted_of(len(wrong), len(answered), 'answer')} differ from what was sent.",
            counts=counts,
            anomalies=[_other(history, int(row)) for row in wrong[:MAX_ANOMALIES]],
        )


def _other(history: Columns, row: int) -> Anomaly:
    sent, back = value_at(history, history.value, row), value_at(history, history.result, row)
    return Anomaly(
        kind="other-value",
        subject=sent,
        explanation=f"Process {history.process[row]} sent {shown(sent)}, and {shown(back)} came back.",
        rows=(row,),
        decisive=row,
    )
