"""Says the operations of registers in integers, inside the JVM, so that nothing else has to travel through a shuffle.

The law: what comes out says exactly what `checker.encode` says to the kernel, or says that it cannot. An operation is coded if
its values are nil or integers of at most 18 digits in their canonical text; an operation with any other value makes its key
one for the general route, which works on whole operations. What certainly had no effect, and what says nothing, is left out
here as it is there.

Columns of a coded operation: `h` (its run and key), `f` (`READ`, ...), `a`, `b`, and its interval from `s` to `e` in the order
of events, where `e` is `INF` if it may have happened at any later time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from checker.models.registers import CasRegister, Register

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from checker.models import Model

INF: Final = 2**63 - 1
NEG: Final = -(2**63)
GREATEST: Final = 10**18
NIL: Final = -(2**62)

SKIPPED: Final = -1  # it had no effect, or says nothing
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


def _number(text: Column) -> Column:
    """Returns the number of a text that is nil or the canonical JSON of an integer; null if it is anything else."""
    number = text.try_cast("bigint")
    fits = (number.cast("string") == text) & number.between(1 - GREATEST, GREATEST - 1)
    return F.when(text.isNull() | (text == "null"), F.lit(NIL)).when(fits, number)


def address(salt: int) -> Column:
    """Returns the number that stands for a row's run and key; `results.pipeline.keys` finds a salt that tells all apart."""
    return F.xxhash64(F.col("run"), F.col("key"), F.col("key").isNull(), F.lit(salt))


def coded(operations: DataFrame, coding: RegisterCoding, salt: int) -> DataFrame:
    """Returns the operations that say something; `f` is `GENERAL` where integers cannot say it."""
    f, kind = F.col("f"), F.col("type")
    value, result = F.col("value"), F.col("result")
    failed = kind == "fail"
    one = _number(F.when(f == "read", result).otherwise(value))
    silent = kind != "ok"
    if coding.nil_says_nothing:
        silent = silent | result.isNull() | (result == "null")
    code = (
        F.when((f == "read") & silent, SKIPPED)
        .when(failed & ((f != "cas") if coding.failed_observes and coding.has_cas else F.lit(col=True)), SKIPPED)
        .when((kind != "info") & F.col("complete_index").isNull(), GENERAL)
        .when((f == "read") & one.isNotNull(), READ)
        .when((f == "write") & one.isNotNull(), WRITE)
    )
    a, b = one, F.lit(0).cast("bigint")
    if coding.has_cas:
        inner = F.substring(value, F.lit(2), F.greatest(F.length(value) - 2, F.lit(0)))
        first, second = (_number(F.substring_index(inner, ",", count)) for count in (1, -1))
        canonical = F.concat(F.lit("["), _said(first), F.lit(","), _said(second), F.lit("]")) == value
        pair = (f == "cas") & F.coalesce(canonical, F.lit(col=False))
        code = code.when(pair & failed, CAS_FAIL).when(pair, CAS)
        a, b = F.when(f == "cas", first).otherwise(one), F.when(pair & ~failed, second).otherwise(b)
    return operations.select(
        address(salt).alias("h"),
        code.otherwise(GENERAL).cast("tinyint").alias("f"),
        F.coalesce(a, F.lit(0)).alias("a"),
        F.coalesce(b, F.lit(0)).alias("b"),
        F.col("invoke_index").alias("s"),
        F.when(kind == "info", F.lit(INF)).otherwise(F.coalesce("complete_index", F.lit(INF))).alias("e"),
    ).where(F.col("f") != SKIPPED)


def _said(number: Column) -> Column:
    return F.when(number == NIL, F.lit("null")).otherwise(number.cast("string"))
