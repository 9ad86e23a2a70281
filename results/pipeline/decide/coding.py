"""Says the operations of registers in integers, inside the JVM, so that nothing else has to travel through a shuffle.

The law: what comes out says exactly what `checker.encode` says to the kernel, or says that it cannot. An operation is coded if
its values are nil or integers of at most 18 digits in their canonical text; an operation with any other value makes its key
one for the general route, which works on whole operations. What certainly had no effect, and what says nothing, is left out
here as it is there.

The columns of a coded operation are `CODED` of `results.pipeline.decide.columns`. Its interval goes from `start` to `end` in
the order of events, where `end` is `INF` if it may have happened at any later time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.formats.columns import NEVER
from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from checker.models.registers import CasRegister, Register
from results.pipeline.decide.columns import ADDRESS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from checker.models import Model

INF: Final = NEVER
NEG: Final = -(2**63)
GREATEST: Final = 10**18
NIL: Final = -(2**62)

GENERAL: Final = 100  # only whole operations can say what it is


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterCoding:
    """How the operations of a register are said in integers.

    Attributes:
        initial: The number of the initial value.
        has_cas: Whether there is compare-and-set.
        nil_says_nothing: Whether a read that returned nil is left out.
        failed_observes: Whether a failed cas says that the value was another one.
    """

    initial: int
    has_cas: bool
    nil_says_nothing: bool
    failed_observes: bool


def coding_of(model: Model) -> RegisterCoding | None:
    """Returns how a model's operations are said in integers; None if they are not."""
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


def address(salt: int) -> Column:
    """Returns the number that stands for a row's run and key; `decide.keys` finds a salt that tells all apart."""
    return F.xxhash64(F.col("run"), F.col("key"), F.col("key").isNull(), F.lit(salt))


def coded(operations: DataFrame, coding: RegisterCoding, salt: int) -> DataFrame:
    """Returns the operations that say something; `opcode` is `GENERAL` where integers cannot say it."""
    speaking = operations.where(~F.coalesce(_silent(coding), F.lit(col=False)))
    # Each text is read in a step of its own: within one step Spark would read it again wherever it is named.
    return _said(_numbered(_texts(speaking, coding, salt)))


def _silent(coding: RegisterCoding) -> Column:
    """Says whether an operation had no effect, or says nothing."""
    f, kind, result = F.col("f"), F.col("type"), F.col("result")
    unread = kind != "ok"
    if coding.nil_says_nothing:
        unread = unread | result.isNull() | (result == "null")
    failed = kind == "fail"
    if coding.failed_observes and coding.has_cas:
        failed = failed & (f != "cas")
    return ((f == "read") & unread) | failed


def _texts(operations: DataFrame, coding: RegisterCoding, salt: int) -> DataFrame:
    """Puts the texts of an operation's one or two values into the two arguments; `is_pair`: they are a cas's."""
    is_cas, value = F.col("f") == "cas", F.col("value")
    is_pair, first, second = F.lit(col=False), value, F.lit(None).cast("string")
    if coding.has_cas:
        comma = F.locate(",", value)
        is_pair = F.coalesce(is_cas & value.startswith("[") & value.endswith("]") & (comma > 1), is_pair)
        first = F.when(is_cas, F.substring(value, F.lit(2), comma - 2)).otherwise(first)
        second = F.when(is_cas, F.substring(value, comma + 1, F.length(value) - comma - 1))
    return operations.select(
        address(salt).alias(ADDRESS),
        *("f", "type", "invoke_index", "complete_index"),
        is_pair.alias("is_pair"),
        F.when(F.col("f") == "read", F.col("result")).otherwise(first).alias("first_argument"),
        second.alias("second_argument"),
    )


def _numbered(texts: DataFrame) -> DataFrame:
    """Puts numbers in the place of texts that are nil or the canonical JSON of integers, and null in that of all others."""
    names = ("first_argument", "second_argument")
    parsed = texts.withColumns({f"{name}_number": F.col(name).try_cast("bigint") for name in names})
    checked = {}
    for name in names:
        text, number = F.col(name), F.col(f"{name}_number")
        fits = (number.cast("string") == text) & number.between(1 - GREATEST, GREATEST - 1)
        checked[name] = F.when(text.isNull() | (text == "null"), F.lit(NIL)).when(fits, number)
    return parsed.withColumns(checked)


def _said(numbered: DataFrame) -> DataFrame:
    f, kind, end = F.col("f"), F.col("type"), F.col("complete_index")
    first, second = F.col("first_argument"), F.col("second_argument")
    code = (
        F.when((kind != "info") & end.isNull(), GENERAL)
        .when(first.isNull(), GENERAL)
        .when(f == "read", READ)
        .when(f == "write", WRITE)
        .when(F.col("is_pair") & second.isNotNull(), F.when(kind == "fail", CAS_FAIL).otherwise(CAS))
        .otherwise(GENERAL)
    )
    zero = F.lit(0).cast("bigint")
    return numbered.select(
        ADDRESS,
        code.cast("tinyint").alias("opcode"),
        F.coalesce(first, zero).alias("first_argument"),
        F.when(F.col("is_pair") & (kind != "fail"), F.coalesce(second, zero)).otherwise(zero).alias("second_argument"),
        F.col("invoke_index").alias("start"),
        F.when(kind == "info", F.lit(INF)).otherwise(F.coalesce(end, F.lit(INF))).alias("end"),
    )
