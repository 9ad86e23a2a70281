"""Codes the operations of registers as integers, from Arrow columns.

The rule: the coding is the one that `checker.search.encode` makes for the kernel, or the operation is `GENERAL`. An
operation has a coding if its values are nil, or integers of at most 18 digits in canonical text. One operation with another
value sends its key to the general route, which works on whole operations. As in `checker.search.encode`, operations that
certainly had no effect, and operations that observe nothing, are left out.

The interval of a coded operation goes from `start` to `end` in the order of events. `end` is `INF` if the operation may have
happened at any later time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker.formats.columns import NEVER
from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from checker.models.registers import CasRegister, Register
from harness.op import OpType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from checker.models import Model

    Flags = NDArray[np.bool_]
    Integers = NDArray[np.int64]

ADDRESS: Final = "address"  # the number of a run and key
INF: Final = NEVER
NEG: Final = -(2**63)
GREATEST: Final = 10**18
NIL: Final = -(2**62)
GENERAL: Final = 100  # the operation has no coding in integers
# The columns that the coding needs, beside `address`.
TEXTS: Final = ("f", "type", "value", "result", "invoke_index", "complete_index")
CODED: Final = pa.schema(
    {
        ADDRESS: pa.int64(),
        "opcode": pa.int8(),  # the function: `READ`, `WRITE`, `CAS`, ...; `GENERAL` if integers cannot represent the operation
        "first_argument": pa.int64(),  # the value that is read or written; of a compare-and-set, the expected value
        "second_argument": pa.int64(),  # the value that a compare-and-set writes; else 0
        "start": pa.int64(),  # the index of the invoke
        "end": pa.int64(),  # the index of the return, or `INF`
    }
)
_INTEGER: Final = r"^(0|-?[1-9][0-9]{0,17})$"
_PAIR: Final = r"^\[(?P<first>[^,]*),(?P<second>[^,]*)\]$"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterCoding:
    """How integers represent the operations of a register.

    Attributes:
        initial: The number of the initial value.
        has_cas: Whether the model has compare-and-set.
        nil_says_nothing: Whether reads that returned nil are left out.
        failed_observes: Whether a failed compare-and-set observes that the value was another one.
    """

    initial: int
    has_cas: bool
    nil_says_nothing: bool
    failed_observes: bool


def coding_of(model: Model) -> RegisterCoding | None:
    """Returns the coding of a model's operations; None if there is none."""
    if type(model) not in {Register, CasRegister}:
        return None
    assert isinstance(model, Register)  # noqa: S101 - both are
    initial = NIL if model.initial is None else model.initial
    if type(initial) is not int or (initial != NIL and abs(initial) >= GREATEST):
        return None
    return RegisterCoding(
        initial=initial,
        has_cas=isinstance(model, CasRegister),
        nil_says_nothing=model.nil_read == "any",
        failed_observes="cas" in model.keeps_failed,
    )


def coded(rows: pa.RecordBatch, coding: RegisterCoding) -> pa.RecordBatch:
    """Returns the operations that matter to the verdict, in the columns `CODED`.

    Args:
        rows: The column `address`, and the columns `TEXTS`.
        coding: How integers represent them.
    """
    f, kind = rows.column("f"), rows.column("type")
    is_read, is_cas = _equal(f, "read"), _equal(f, "cas")
    failed, ended = _equal(kind, OpType.FAIL), rows.column("complete_index").is_valid().to_numpy(zero_copy_only=False)
    unread = ~_equal(kind, OpType.OK)
    if coding.nil_says_nothing:
        unread |= ~rows.column("result").is_valid().to_numpy(zero_copy_only=False) | _equal(
            rows.column("result"), "null"
        )
    lost = failed & ~is_cas if coding.failed_observes and coding.has_cas else failed
    kept = np.flatnonzero(~((is_read & unread) | lost))
    rows, is_read, is_cas, failed, ended = (
        rows.take(pa.array(kept)),
        is_read[kept],
        is_cas[kept],
        failed[kept],
        ended[kept],
    )
    value = _flat(rows.column("value"))
    shown = pc.if_else(pa.array(is_read), _flat(rows.column("result")), value)
    first, second, fits = _arguments(shown, value, is_cas & coding.has_cas)
    is_info = _equal(rows.column("type"), OpType.INFO)
    opcode = np.full(rows.num_rows, GENERAL, np.int8)
    fits &= is_info | ended
    opcode[fits & is_read] = READ
    opcode[fits & _equal(rows.column("f"), "write")] = WRITE
    pairs = fits & is_cas & coding.has_cas
    opcode[pairs] = np.where(failed[pairs], CAS_FAIL, CAS)
    end = np.where(is_info, INF, _integers(rows.column("complete_index"), INF))
    columns = (opcode, first, np.where(pairs & ~failed, second, 0), _integers(rows.column("invoke_index")), end)
    return pa.RecordBatch.from_arrays([rows.column(ADDRESS), *map(pa.array, columns)], schema=CODED)


def made(f: pa.Array | pa.ChunkedArray, value: pa.Array | pa.ChunkedArray) -> Integers:
    """Returns the number of the value that each operation of a register writes, also a failed one; `NEG` if it writes none."""
    is_write, is_cas = (_equal(f, name) for name in ("write", "cas"))
    value = _flat(value)
    first, second, fits = _arguments(value, value, is_cas)
    numbers: Integers = np.where(fits & is_write, first, np.where(fits & is_cas, second, NEG))
    return numbers


def _arguments(shown: pa.Array, value: pa.Array, is_cas: Flags) -> tuple[Integers, Integers, Flags]:
    """Returns the first argument of each operation, the second one of a compare-and-set, and which rows integers represent.

    Args:
        shown: The value that each operation reads or writes.
        value: The value of each, which is a pair for a compare-and-set.
        is_cas: Which operations are compare-and-sets.
    """
    first, fits = _numbers(shown)
    second = np.zeros(len(first), np.int64)
    places = np.flatnonzero(is_cas)
    if len(places):
        members = pc.extract_regex(value.take(pa.array(places)), _PAIR)
        split = members.is_valid().to_numpy(zero_copy_only=False)
        first[places], first_fits = _numbers(_member(members, "first"))
        second[places], second_fits = _numbers(_member(members, "second"))
        fits[places] = split & first_fits & second_fits
    return first, second, fits


def _member(members: pa.StructArray, name: str) -> pa.Array:
    return pc.struct_field(members, name)


def _numbers(texts: pa.Array) -> tuple[Integers, Flags]:
    """Returns the number of each text, and whether it has one: nil and canonical JSON integers have."""
    nothing = pc.or_kleene(pc.is_null(texts), pc.equal(texts, "null"))
    nil = pc.fill_null(nothing, fill_value=True).to_numpy(zero_copy_only=False)
    whole = pc.fill_null(pc.match_substring_regex(texts, _INTEGER), fill_value=False)
    numbers = np.full(len(texts), NIL, np.int64)
    is_whole = whole.to_numpy(zero_copy_only=False)
    numbers[is_whole] = texts.filter(whole).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers, nil | is_whole


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return flat.cast(pa.string())


def _equal(column: pa.Array | pa.ChunkedArray, text: str) -> Flags:
    flags: Flags = pc.fill_null(pc.equal(_flat(column), text), fill_value=False).to_numpy(zero_copy_only=False)
    return flags


def _integers(column: pa.Array, absent: int = 0) -> Integers:
    numbers: Integers = pc.fill_null(column, absent).to_numpy(zero_copy_only=False)
    return numbers
