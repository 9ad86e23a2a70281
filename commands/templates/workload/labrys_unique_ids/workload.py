"""Unique identifiers: clients ask for identifiers, and no two answers may be the same."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from checker.columns import OK, of_operations
from checker.judging import MAX_ANOMALIES, Anomaly, Judgement, part_of, value_at
from harness.combinators import from_function
from harness.declare import option
from harness.op import Invocation
from harness.randomness import stream
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.columns import Columns
    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueIdsOptions:
    """CHANGE: the options of your workload. Each is a flag of `labrys test --workload unique-ids`."""

    sequences: int = option(
        1, "How many sequences of identifiers there are, each with a key.", low=1, high=1000, shrinks_to=1
    )


class UniqueIdsWorkload:
    """See `harness.workload.Workload`, and `checker.judging.Judge` for the judge."""

    name = "unique-ids"
    summary = "Clients ask for identifiers, and no two answers may be the same."
    Options = UniqueIdsOptions
    # CHANGE: the functions that a client carries out, each with its argument and its result.
    functions: ClassVar[Mapping[str, str]] = MappingProxyType({"generate": "null -> an identifier, any JSON value"})
    model = None  # the workload judges histories itself; with a model's name, each key is checked for linearizability

    def __init__(self, options: UniqueIdsOptions | None = None) -> None:
        self._options = options or UniqueIdsOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """CHANGE: the operations of the clients. Draw only from streams of the seed, so that a run can be repeated."""
        draws = [stream(seed, f"worker/{number}") for number in range(streams)]

        def next_operation(asker: Asker) -> Invocation:
            key = f"s{draws[asker.worker].randrange(self._options.sequences)}"
            return Invocation("generate", None, key)

        return from_function(next_operation)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream, for `labrys plan`."""
        draws = [stream(seed, f"worker/{number}") for number in range(streams)]
        return [
            {"stream": number, "keys": [f"s{draw.randrange(self._options.sequences)}" for _ in range(count)]}
            for number, draw in enumerate(draws)
        ]

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:
        """CHANGE: the final reads through each node, after all faults are healed. This workload has nothing to read."""
        return from_function(lambda _: None)

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Judges a whole run."""
        columns = of_operations(operations)
        return [part_of(self, columns, operation=operations.__getitem__, faults=observed.faults)]

    def judge(self, history: Columns) -> Judgement:
        """CHANGE: judges the operations of one key. Work on arrays, so that ten million operations take seconds.

        `history.result` has a kind and two numbers for each row. Two results are equal if all three are.
        """
        answered = np.flatnonzero(history.type == OK)
        if not len(answered):
            return Judgement(verdict=Verdict.UNKNOWN, reason="No client got an identifier, so nothing was tested.")
        found = history.result.only(answered)
        order = np.lexsort((found.second, found.first, found.kind))
        kind, first, second = found.kind[order], found.first[order], found.second[order]
        same = (kind[1:] == kind[:-1]) & (first[1:] == first[:-1]) & (second[1:] == second[:-1])
        doubles = np.flatnonzero(same)
        counts = {"given": len(answered), "given-twice": len(doubles)}
        if not len(doubles):
            return Judgement(verdict=Verdict.VALID, reason=f"All {len(answered)} identifiers differ.", counts=counts)
        anomalies = [
            self._given_twice(history, int(answered[order[place]]), int(answered[order[place + 1]]))
            for place in doubles[:MAX_ANOMALIES].tolist()
        ]
        reason = f"{len(doubles)} of {len(answered)} identifiers were given before."
        return Judgement(verdict=Verdict.INVALID, reason=reason, counts=counts, anomalies=anomalies)

    def _given_twice(self, history: Columns, one: int, other: int) -> Anomaly:
        identifier = value_at(history, history.result, one)
        explanation = (
            f"Process {history.process[one]} and process {history.process[other]} both got the identifier {identifier}."
        )
        last = max(one, other)
        return Anomaly(
            kind="given-twice", subject=identifier, explanation=explanation, rows=(one, other), decisive=last
        )
