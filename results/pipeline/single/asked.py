"""The workload's own operations of one run as arrays: their times, outcomes, nodes and clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

from harness.op import OpType
from harness.units import NS_PER_S
from results.measure.op_outcomes import REFUSED, error_code
from results.measure.series import bucket_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Integers = NDArray[np.int64]

ABSENT: Final = -1  # the place of a missing text, and the time of a missing return


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A column of texts: for each operation the place of its text in `texts`, or -1 without one."""

    places: Integers
    texts: Sequence[str]

    def text(self, place: int) -> str | None:
        """Returns the text at a place; None for -1."""
        return None if place == ABSENT else self.texts[place]

    def equal(self, text: str) -> Flags:
        """Returns which operations have this text."""
        place = self.texts.index(text) if text in self.texts else len(self.texts)
        return np.equal(self.places, place)

    def among(self, texts: Sequence[str]) -> Flags:
        """Returns which operations have one of these texts."""
        return np.isin(self.places, [place for place, text in enumerate(self.texts) if text in texts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The workload's own operations of one run, as arrays of equal length.

    Attributes:
        f: The function of each.
        outcome: Its outcome, one of `results.measure.op_outcomes.OUTCOMES`.
        node: The node that the client asked.
        key: Its key.
        code: The code of its error.
        start_ns: The time of its invoke.
        end_ns: The time of its return; -1 without one.
        wanted_ns: Its scheduled time, or else the time of its invoke.
        good: Whether it was answered.
        refused: Whether a node named another one.
        follows: Whether its client follows the leader.
        measures: Whether it measures the system.
        horizon_ns: The time right after the last `wanted_ns`.
        width_s: The width of a bucket of time.
        time_s: The start of the bucket of each.
    """

    f: Named
    outcome: Named
    node: Named
    key: Named
    code: Named
    start_ns: Integers
    end_ns: Integers
    wanted_ns: Integers
    good: Flags
    refused: Flags
    follows: Flags
    measures: Flags
    horizon_ns: int
    width_s: float
    time_s: NDArray[np.float64]


def asked_of(operations: pa.Table, answers: Sequence[str], refusals: Sequence[str]) -> Asked | None:
    """Returns the workload's own operations of a run; None if there are none.

    Args:
        operations: The columns of `schema.OPERATIONS`, of one run.
        answers: Codes of `fail` errors that are answers.
        refusals: Codes of `fail` errors that are refusals.
    """
    rows = operations.filter(pc.is_null(operations.column("phase")))
    if not rows.num_rows:
        return None
    rows = rows.sort_by([("invoke_index", "ascending")])
    type_ = _named(rows, "type")
    start_ns = _numbers(rows.column("start_ns"))
    wanted_ns = _numbers(pc.coalesce(rows.column("scheduled_ns"), rows.column("start_ns")))
    errors = _named(rows, "error")
    code = _recoded(errors)
    failed = type_.equal(OpType.FAIL)
    refused = failed & code.among(refusals)
    follows = rows.column("via").is_valid().to_numpy()
    horizon_ns = int(wanted_ns.max()) + 1
    width_s = bucket_s((horizon_ns - 1) / NS_PER_S)
    at_s = np.maximum(wanted_ns, 0) / NS_PER_S
    # As `//` in Python, where 1.0 // 0.1 is 9.
    time_s = np.round((at_s - np.fmod(at_s, width_s)) / width_s) * width_s
    return Asked(
        f=_named(rows, "f"),
        outcome=Named(places=np.where(refused, len(type_.texts), type_.places), texts=[*type_.texts, REFUSED]),
        node=_named(rows, "node"),
        key=_named(rows, "key"),
        code=code,
        start_ns=start_ns,
        end_ns=_numbers(pc.fill_null(rows.column("end_ns"), ABSENT)),
        wanted_ns=wanted_ns,
        good=type_.equal(OpType.OK) | (failed & code.among(answers)),
        refused=refused,
        follows=follows,
        measures=follows | ~follows.any(),
        horizon_ns=horizon_ns,
        width_s=width_s,
        time_s=time_s,
    )


def _numbers(column: pa.ChunkedArray) -> Integers:
    numbers: Integers = column.to_numpy()
    return numbers.astype(np.int64, copy=False)


def _named(rows: pa.Table, name: str) -> Named:
    encoded = rows.column(name).combine_chunks().dictionary_encode()
    places = pc.fill_null(encoded.indices, ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
    return Named(places=places, texts=encoded.dictionary.to_pylist())


def _recoded(errors: Named) -> Named:
    """Returns the codes of errors; several errors can have the same code."""
    codes = [error_code(text) or "" for text in errors.texts]
    texts = list(dict.fromkeys(codes))
    places = np.array([*(texts.index(code) for code in codes), ABSENT], np.int64)
    return Named(places=places[errors.places], texts=texts)
