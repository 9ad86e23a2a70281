"""The columns of the rows that travel between the steps: the name of each, its type, and what it says.

The law: a column has the same name and the same type in all rows, and a schema is made only of the columns below. The tables in
files have their columns in `results.pipeline.schema`. `checker.contraction` uses the names of the pieces of chains.

An index is the place of an event in its history. `INF` and `NEG` of `results.pipeline.decide.coding` stand for the least and
the greatest of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDRESS: Final = "address"  # the number that stands for a run and key

_LONG: Final = t.LongType()
_LONGS: Final = t.ArrayType(_LONG)
_FLAG: Final = t.BooleanType()
_TEXT: Final = t.StringType()

_OF_OPERATIONS: Final[Mapping[str, t.DataType]] = {
    "opcode": t.ByteType(),  # what is done: `READ`, `WRITE`, `CAS`, ...; `GENERAL` if integers cannot say it
    "first_argument": _LONG,  # the value that is read or written; of a compare-and-set the one that it expects
    "second_argument": _LONG,  # the value that a compare-and-set writes; else 0
    "start": _LONG,  # the index of the invoke
    "end": _LONG,  # the index of the return; `INF` if the operation may have happened at any later time
    "after_0": _LONG,  # an index: from when on is something seen that began after it?
    "after_1": _LONG,  # another one
}

_OF_VALUES: Final[Mapping[str, t.DataType]] = {
    "value": _LONG,  # the value that an operation makes or sees; of a chain the first one
    "writers": _LONG,  # how many operations wrote it
    "write_start": _LONG,  # the least start of these; of a chain: where its first value is written, -1 for the initial
    "write_end": _LONG,  # the least end of these
    "cas": _LONG,  # how many of these are a compare-and-set
    "expected": _LONG,  # the value that the compare-and-set expects which wrote it
    "reads": _LONG,  # how many reads returned it
    "last_read_start": _LONG,  # the greatest start of these
    "first_read_end": _LONG,  # the least end of these
    "waits": _LONG,  # how many compare-and-sets expect it
    "first_expecting_end": _LONG,  # the least end of these
    "failed": _LONG,  # how many failed compare-and-sets say that the value was not this one
    "general": _LONG,  # how many operations integers cannot say
    "since_0": _LONG,  # the least end of an operation that shows something which began after `after_0`
    "since_1": _LONG,  # the same for `after_1`
}

_OF_PIECES: Final[Mapping[str, t.DataType]] = {
    "outcome": _LONG,  # what a row says: `OPEN`, `BLOCK`, `UNSOLVED`, or a contradiction
    "previous_value": _LONG,  # the value that the first compare-and-set expects, or how else the piece begins
    "first_value": _LONG,  # the first value of the chain
    "last_value": _LONG,  # the last one
    "alive": _LONG,  # 1 if it certainly took effect
    "opened_0": _LONG,  # 1 if a compare-and-set of it began after `after_0`
    "opened_1": _LONG,  # the same for `after_1`
}

_OF_ZONES: Final[Mapping[str, t.DataType]] = {
    "least_end": _LONG,  # the least end of all operations of a value or a chain
    "least_end_value": _LONG,  # the value of the operation that ends first
    "greatest_start": _LONG,  # the greatest start of all operations of a value or a chain
    "greatest_start_value": _LONG,  # the value of the operation that starts last
    "forward": _FLAG,  # whether the least end is before the greatest start
    "low": _LONG,  # the lesser one of the two
    "high": _LONG,  # the greater one of the two
    "limit": _LONG,  # the index that no forward zone before this one may pass
    "late": _LONG,  # the end of an operation that saw a value which has no write, or one that begins only later; null for none
    "placed": _FLAG,  # whether it is a zone that others can meet
}

_OF_SLICES: Final[Mapping[str, t.DataType]] = {
    "slice": _LONG,  # the number of a slice of a key's timeline
    "reach": _LONG,  # the greatest end of the forward zones
    "reach_before": _LONG,  # the same of those before
    "least_limit": _LONG,  # the least limit of the zones
    "least_limit_after": _LONG,  # the same of those after
    "met_limit": _LONG,  # the least limit of the zones that others of the slice meet
    "early": _FLAG,  # whether a value of a chain was seen before it was written
    "doubled": _FLAG,  # whether a value was written twice or is the initial one
    "limits": _LONGS,  # the limits of a few zones of a key that others meet
}

_OF_LINKS: Final[Mapping[str, t.DataType]] = {
    "root": _LONG,  # the value that a chain begins with
    "path": _LONGS,  # the values that a chain leads over
}

# What is asked about a few keys: the rows come from the driver.
_OF_QUESTIONS: Final[Mapping[str, t.DataType]] = {
    "until": _LONG,  # the index with which the part of the history ends that is looked at
    "our_value": _LONG,  # the value of a zone, beside the zones that it may meet
    "our_least_end": _LONG,
    "our_low": _LONG,
    "our_high": _LONG,
    "our_limit": _LONG,
    "our_forward": _FLAG,
    "mark": t.IntegerType(),  # which of the two indexes `after_0` and `after_1` is meant
    "pair": _LONG,  # the number of a pair of values that contradict each other
    "began_after": _LONG,  # an index after which something of the value begins
    "shown_from": _LONG,  # an index before which the pair shows nothing
    "in_full": _FLAG,  # whether more of the value is wanted than who wrote it
    "seen_before": _LONG,  # an index: a read that ended before it is wanted, too
    "at_start": _FLAG,  # whether an operation starts where one does that is told of
    "at_end": _FLAG,  # whether an operation ends where one does that is told of
}

_OF_ANSWERS: Final[Mapping[str, t.DataType]] = {
    "verdict": _TEXT,
    "analyzer": _TEXT,
    "cause": _TEXT,
    "kind": _TEXT,  # what is wrong
    "op_start": _LONG,  # the invoke of the operation by whose return no linearization is left
    "op_end": _LONG,  # its return
    "core": _LONGS,  # the invokes of the operations that the explanation names
    "tied": _FLAG,  # whether two operations start at one index, so that invokes do not name them
    "unsuited": _TEXT,  # why the near-linear analyzer does not suit the key
    "part": _LONGS,  # the invokes of the operations that are looked at instead of the whole key
}

TYPES: Final[Mapping[str, t.DataType]] = {
    ADDRESS: _LONG,
    **_OF_OPERATIONS,
    **_OF_VALUES,
    **_OF_PIECES,
    **_OF_ZONES,
    **_OF_SLICES,
    **_OF_LINKS,
    **_OF_QUESTIONS,
    **_OF_ANSWERS,
}


def schema_of(*names: str) -> t.StructType:
    """Returns the schema of rows with these columns.

    Raises:
        KeyError: There is no such column.
    """
    return t.StructType([t.StructField(name, TYPES[name]) for name in names])


CODED: Final = schema_of(ADDRESS, "opcode", "first_argument", "second_argument", "start", "end")
# What is said of a key at once; `results.pipeline.decide.details` turns it into a row of verdicts.
ANSWER: Final = schema_of(ADDRESS, *_OF_ANSWERS)
