"""A small workload that judges itself, for tests of whoever finds, asks and shows a judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from checker.formats.columns import INTEGER, OK
from checker.judging import Anomaly, Judgement, part_of
from harness.console.plugins import WORKLOADS, Plugin, plugins
from harness.declare import option
from harness.errors import InputError
from harness.op import Operation, OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.formats.columns import Columns
    from harness.verdict import Part
    from harness.workload import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class IdsOptions:
    """The options of `Ids`."""

    times: int = option(1, "How often an id may be given.", low=1, high=10, judges=True)
    lenient: bool = option(default=False, help="Whether everything is right.", judges=True)
    pace: int = option(5, "Ids in a second.", low=1, high=10)


class Ids:
    """Clients ask for ids, and no id may be given more often than `times`; a judge, see `checker.judging.Judge`."""

    name = "ids"
    summary = "Ids that nobody else gets."
    Options = IdsOptions
    functions: ClassVar[Mapping[str, str]] = {"ask": "null -> an id"}
    model = None

    def __init__(self, options: IdsOptions | None = None) -> None:
        self._options = options or IdsOptions()

    def judge(self, history: Columns) -> Judgement:
        """Finds ids that were given too often."""
        for row, number in enumerate(history.function.tolist()):
            if history.functions[number] != "ask":
                raise InputError(f"event {history.start[row]}: expected ask, found {history.functions[number]}")
        if (history.value.kind == INTEGER).any():
            raise ZeroDivisionError("a mistake of the judge itself")
        rows = np.flatnonzero((history.type == OK) & (history.result.kind == INTEGER))
        if not len(rows):
            return Judgement(verdict=Verdict.UNKNOWN, reason="No id was given.")
        ids, counts = np.unique(history.result.first[rows], return_counts=True)
        often = ids[counts > self._options.times].tolist()
        if not often or self._options.lenient:
            return Judgement(verdict=Verdict.VALID, reason=f"{len(ids)} ids.", counts={"ids": len(ids)})
        anomalies = []
        for given_id in often:
            given = rows[history.result.first[rows] == given_id].tolist()
            text = f"The id {given_id} was given {len(given)} times."
            anomalies.append(
                Anomaly(kind="twice", subject=given_id, explanation=text, rows=tuple(given[:12]), decisive=given[-1])
            )
        counted = {"ids": len(ids), "twice": len(often)}
        return Judgement(verdict=Verdict.INVALID, reason="Not unique.", counts=counted, anomalies=anomalies)

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the part of the judge."""
        from checker.formats.columns import of_operations  # noqa: PLC0415 - as a run does it

        return [part_of(self, of_operations(operations), operation=operations.__getitem__, faults=observed.faults)]


INSTALLED = plugins  # before a test puts `registry` in its place


def registry(group: str) -> dict[str, Plugin]:
    """Returns what is installed, in place of `harness.console.plugins.plugins`: `Ids`, one with a model, and a broken one."""
    if group != WORKLOADS:
        return dict(INSTALLED(group))
    places = {
        "ids": "tests.judges:Ids",
        "register": "workloads.register.workload:RegisterWorkload",
        "broken": "tests.judges:Nothing",
    }
    return {name: Plugin(group=group, name=name, place=location, package="tests") for name, location in places.items()}


def asks(*given: tuple[str | None, int | None], f: str = "ask") -> list[Operation]:
    """Returns a history in which ids are asked for, one after the other.

    Args:
        given: The key and the id that was given; None for an operation that may have got one.
        f: The function.
    """
    return [
        Operation(
            process=index, f=f, value=None, result=result, type=OpType.INFO if result is None else OpType.OK,
            start_ns=2 * index, end_ns=2 * index + 1, invoke_index=2 * index,
            complete_index=2 * index + 1, key=key, node="n1",
        )
        for index, (key, result) in enumerate(given)
    ]  # fmt: skip
