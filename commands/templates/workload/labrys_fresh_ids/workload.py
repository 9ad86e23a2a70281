"""Unique identifiers: clients ask for identifiers, and no two answers may be the same."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import OK
from checker.judging import Anomaly, value_at
from checker.judging.rules import Rule, judged
from harness.combinators import each_stream, independent
from harness.declare import option
from harness.op import Invocation
from workloads.base import JudgedWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Source, Stream
    from harness.generator import Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshIdsOptions:
    """CHANGE: the options of your workload. Each is a flag of `labrys test --workload fresh-ids`."""

    sequences: int = option(
        1, "How many sequences of identifiers there are, each with a key.", low=1, high=1000, shrinks_to=1
    )


class FreshIdsWorkload(JudgedWorkload[FreshIdsOptions]):
    """See `harness.workload.Workload`, and `checker.judging.Judge` for the judge."""

    name = "fresh-ids"
    summary = "Clients ask for identifiers, and no two answers may be the same."
    Options = FreshIdsOptions
    # CHANGE: the functions that a client carries out, each with its argument and its result.
    functions = MappingProxyType({"generate": "null -> an identifier, any JSON value"})
    # CHANGE: the functions that read a key through each node after all faults are healed. This workload has nothing to read.
    final = ()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """CHANGE: the operations of the clients. Draw only from the stream, so that a seed repeats them.

        `mix(stream, (2, Invocation("read")), (1, write))` draws one of several functions; see `harness.combinators`.
        """

        def operations(stream: Stream) -> Source:
            return independent(stream, lambda: f"s{stream.below(self.options.sequences)}", Invocation("generate"))

        return each_stream(operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """CHANGE: judges the operations of one key. Work on arrays, so that ten million operations take seconds.

        `history.result` has a kind and two numbers for each row. Two results are equal if all three are.
        """
        answered = np.flatnonzero(history.type == OK)
        answers = history.result.only(answered)
        order = np.lexsort((answers.second, answers.first, answers.kind))
        kind, first, second = answers.kind[order], answers.first[order], answers.second[order]
        same = (kind[1:] == kind[:-1]) & (first[1:] == first[:-1]) & (second[1:] == second[:-1])
        doubles = np.flatnonzero(same)

        def anomalies() -> Iterator[Anomaly]:
            for index in doubles.tolist():
                yield self._given_twice(history, int(answered[order[index]]), int(answered[order[index + 1]]))

        # CHANGE: a rule for each thing that a correct system never shows. The counts have how often each is broken.
        return judged(
            [Rule(kind="given-twice", anomalies=anomalies)],
            {"given": len(answered), "given-twice": len(doubles)},
            held=f"All {len(answered)} identifiers differ.",
            untested=None if len(answered) else "No client got an identifier, so nothing was tested.",
            broken=f"{len(doubles)} of {len(answered)} identifiers were given before.",
        )

    def _given_twice(self, history: Columns, one: int, other: int) -> Anomaly:
        identifier = value_at(history, history.result, one)
        explanation = (
            f"Process {history.process[one]} and process {history.process[other]} both got the identifier {identifier}."
        )
        last = max(one, other)
        return Anomaly(
            kind="given-twice", subject=identifier, explanation=explanation, rows=(one, other), decisive=last
        )
