"""The workload's own operations of one slice of a run as arrays: their times, outcomes, nodes and clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

from harness.op import OpType
from results.measure.op_outcomes import REFUSED, error_code
from results.pipeline.measure.spans import in_order, wanted_ns

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from results.pipeline.measure.spans import Span

    Flags = NDArray[np.bool_]
    Integers = NDArray[np.int64]

ABSENT: Final = -1  # the place of a missing text, and the time of a missing return


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A column of texts: for each operation the place of its text in `texts`, or -1 without one."""

    places: Integers
    texts: Sequence[str]

    def text(self, number: int) -> str | None:
        """Returns the text at a place; None for -1."""
        return None if number == ABSENT else self.texts[number]

    def equal(self, text: str) -> Flags:
        """Returns which operations have this text."""
        number = self.texts.index(text) if text in self.texts else len(self.texts)
        return np.equal(self.places, number)

    def among(self, texts: Collection[str]) -> Flags:
        """Returns which operations have one of these texts."""
        return np.isin(self.places, [index for index, text in enumerate(self.texts) if text in texts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The workload's own operations of a slice, as arrays of equal length.

    Attributes:
        f: The function of each.
        outcome: Its outcome, one of `results.measure.op_outcomes.OUTCOMES`.
        node: The node that the client asked.
        key: Its key.
        code: The code of its error.
        start_ns: The time of its invoke.
        end_ns: The time of its return; -1 without one.
        wanted_ns: Its scheduled time, or else the time of its invoke.
        own: Whether it belongs to the slice, and not to the time after it.
        good: Whether it was answered.
        refused: Whether a node named another one.
        follows: Whether its client follows the leader.
        measures: Whether it measures the system.
        place: The number of its bucket of time.
    """

    f: Named
    outcome: Named
    node: Named
    key: Named
    code: Named
    start_ns: Integers
    end_ns: Integers
    wanted_ns: Integers
    own: Flags
    good: Flags
    refused: Flags
    follows: Flags
    measures: Flags
    place: Integers


def asked_of(rows: pa.Table, number: int, span: Span, *, answers: Sequence[str], refusals: Sequence[str]) -> Asked:
    """Returns the operations of a slice as arrays.

    Args:
        rows: The operations that `results.pipeline.measure.spans.slices_of` yields.
        number: The number of the slice.
        span: The span of the run.
        answers: Codes of `fail` errors that are answers.
        refusals: Codes of `fail` errors that are refusals.
    """
    rows = in_order(rows)
    type_ = _named(rows, "type")
    wanted = wanted_ns(rows)
    code = _recoded(_named(rows, "error"))
    failed = type_.equal(OpType.FAIL)
    refused = failed & code.among(refusals)
    follows = rows.column("via").is_valid().to_numpy()
    bucket = span.place(wanted)
    return Asked(
        f=_named(rows, "f"),
        outcome=Named(places=np.where(refused, len(type_.texts), type_.places), texts=[*type_.texts, REFUSED]),
        node=_named(rows, "node"),
        key=_named(rows, "key"),
        code=code,
        start_ns=_numbers(rows.column("start_ns")),
        end_ns=_numbers(pc.fill_null(rows.column("end_ns"), ABSENT)),
        wanted_ns=wanted,
        own=bucket // span.buckets == number,
        good=type_.equal(OpType.OK) | (failed & code.among(answers)),
        refused=refused,
        follows=follows,
        measures=follows if span.followed else np.ones(rows.num_rows, np.bool_),
        place=bucket,
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
