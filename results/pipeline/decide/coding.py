"""Codes the operations of registers as integers, inside the JVM, so that shuffles move only integers.

The rule: the coding is the one that `checker.search.encode` makes for the kernel, or the operation is `GENERAL`. An
operation has a coding if its values are nil, or integers of at most 18 digits in canonical text. One operation with another
value sends its key to the general route, which works on whole operations. As in `checker.search.encode`, operations that
certainly had no effect, and operations that observe nothing, are left out.

The columns of a coded operation are `CODED` of `results.pipeline.large_keys.columns`. Its interval goes from `start` to `end`
in the order of events. `end` is `INF` if the operation may have happened at any later time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.columns import NEVER
from checker.models.opcodes import CAS, CAS_FAIL, READ, WRITE
from checker.models.registers import CasRegister, Register
from results.pipeline.large_keys.columns import ADDRESS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from checker.models import Model

INF: Final = NEVER
NEG: Final = -(2**63)
GREATEST: Final = 10**18
NIL: Final = -(2**62)

GENERAL: Final = 100  # the operation has no coding in integers


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


def address(salt: int) -> Column:
    """Returns the number of a row's run and key; `decide.keys` finds a salt without collisions."""
    return F.xxhash64(F.col("run"), F.col("key"), F.col("key").isNull(), F.lit(salt))


def coded(operations: DataFrame, coding: RegisterCoding, salt: int) -> DataFrame:
    """Returns the operations that matter to the verdict; `opcode` is `GENERAL` for those without a coding."""
    relevant = operations.where(~F.coalesce(_is_irrelevant(coding), F.lit(col=False)))
    # Each text is parsed in a step of its own: within one step, Spark parses it again at each use.
    return _opcodes(_numbered(_texts(relevant, coding, salt)))


def _is_irrelevant(coding: RegisterCoding) -> Column:
    """Returns whether an operation had no effect and observed nothing."""
    f, kind, result = F.col("f"), F.col("type"), F.col("result")
    unread = kind != "ok"
    if coding.nil_says_nothing:
        unread = unread | result.isNull() | (result == "null")
    failed = kind == "fail"
    if coding.failed_observes and coding.has_cas:
        failed = failed & (f != "cas")
    return ((f == "read") & unread) | failed


def made() -> Column:
    """Returns the number of the value that an operation of a register writes, also a failed one; null if it writes none."""
    f, value = F.col("f"), F.col("value")
    text = F.when(f == "write", F.coalesce(value, F.lit("null"))).when(f == "cas", _second(value))
    return F.when(text == "null", F.lit(NIL)).otherwise(text.try_cast("bigint"))


def _second(value: Column) -> Column:
    """Returns the text of the second member of a pair, as in the arguments of a compare-and-set."""
    comma = F.locate(",", value)
    return F.substring(value, comma + 1, F.length(value) - comma - 1)


def _texts(operations: DataFrame, coding: RegisterCoding, salt: int) -> DataFrame:
    """Puts the text of each value of an operation into a column; `is_pair` marks the two values of a compare-and-set."""
    is_cas, value = F.col("f") == "cas", F.col("value")
    is_pair, first, second = F.lit(col=False), value, F.lit(None).cast("string")
    if coding.has_cas:
        comma = F.locate(",", value)
        is_pair = F.coalesce(is_cas & value.startswith("[") & value.endswith("]") & (comma > 1), is_pair)
        first = F.when(is_cas, F.substring(value, F.lit(2), comma - 2)).otherwise(first)
        second = F.when(is_cas, _second(value))
    return operations.select(
        address(salt).alias(ADDRESS),
        *("f", "type", "invoke_index", "complete_index"),
        is_pair.alias("is_pair"),
        F.when(F.col("f") == "read", F.col("result")).otherwise(first).alias("first_argument"),
        second.alias("second_argument"),
    )


def _numbered(texts: DataFrame) -> DataFrame:
    """Replaces texts by numbers: nil and canonical JSON integers have one, and all other texts become null."""
    names = ("first_argument", "second_argument")
    parsed = texts.withColumns({f"{name}_number": F.col(name).try_cast("bigint") for name in names})
    checked = {}
    for name in names:
        text, number = F.col(name), F.col(f"{name}_number")
        fits = (number.cast("string") == text) & number.between(1 - GREATEST, GREATEST - 1)
        checked[name] = F.when(text.isNull() | (text == "null"), F.lit(NIL)).when(fits, number)
    return parsed.withColumns(checked)


def _opcodes(numbered: DataFrame) -> DataFrame:
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
