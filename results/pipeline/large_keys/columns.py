"""The columns of the rows between the steps of the job: name, type and meaning.

The rule: a column has the same name and the same type in all rows, and every schema consists of the columns below. The tables
in files have their columns in `results.pipeline.schema`. `contraction` uses the names of the columns of pieces.

An index is the place of an event in its history. `INF` of `results.pipeline.decide.coding` is the minimum of no numbers, and
`NEG` the maximum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import types as t

from results.pipeline.decide.coding import CODED
from results.pipeline.spark.types import struct_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONG: Final = t.LongType()
_LONGS: Final = t.ArrayType(_LONG)
_FLAG: Final = t.BooleanType()

_OF_OPERATIONS: Final[Mapping[str, t.DataType]] = {
    **{field.name: field.dataType for field in struct_of(CODED)},  # see `results.pipeline.decide.coding`
    "after_0": _LONG,  # an index; `since_0` is about operations that begin after it
    "after_1": _LONG,  # an index; `since_1` is about operations that begin after it
}

_OF_VALUES: Final[Mapping[str, t.DataType]] = {
    "value": _LONG,  # the value that an operation writes or observes; of a chain, its first value
    "writers": _LONG,  # how many operations wrote it
    "write_start": _LONG,  # the minimum start of the writers; of a chain, the start of its first write (initial value: -1)
    "write_end": _LONG,  # the minimum end of the writers
    "cas": _LONG,  # how many of the writers are compare-and-sets
    "expected": _LONG,  # the value that the compare-and-set expects that wrote it
    "reads": _LONG,  # how many reads returned it
    "last_read_start": _LONG,  # the maximum start of the reads
    "first_read_end": _LONG,  # the minimum end of the reads
    "waits": _LONG,  # how many compare-and-sets expect it
    "first_expecting_end": _LONG,  # the minimum end of these
    "failed": _LONG,  # how many failed compare-and-sets observed that the value was not this one
    "general": _LONG,  # how many operations have no coding in integers
    "since_0": _LONG,  # the minimum end of the operations that observe something which began after `after_0`
    "since_1": _LONG,  # the same for `after_1`
}

_OF_PIECES: Final[Mapping[str, t.DataType]] = {
    "outcome": _LONG,  # the state of a piece: `OPEN`, `BLOCK`, `UNSOLVED`, or a contradiction
    "previous_value": _LONG,  # the value that the first compare-and-set expects; `ROOTED` or `UNWRITTEN` without one
    "first_value": _LONG,  # the first value of the piece
    "last_value": _LONG,  # the last value of the piece
    "alive": _LONG,  # 1 if the piece certainly took effect
    "opened_0": _LONG,  # 1 if one of its compare-and-sets began after `after_0`
    "opened_1": _LONG,  # the same for `after_1`
}

_OF_ZONES: Final[Mapping[str, t.DataType]] = {
    "min_end": _LONG,  # the minimum end of all operations of a value or a chain
    "min_end_value": _LONG,  # the value of the operation that ends first
    "max_start": _LONG,  # the maximum start of all operations of a value or a chain
    "max_start_value": _LONG,  # the value of the operation that starts last
    "forward": _FLAG,  # whether the minimum end is before the maximum start
    "low": _LONG,  # the lower one of the two
    "high": _LONG,  # the higher one of the two
    "limit": _LONG,  # no forward zone before this one may reach beyond this index
    "late": _LONG,  # the end of an operation that observed a value without a write, or before its write began; null for none
    "placed": _FLAG,  # whether the zone can meet other zones
}

_OF_SLICES: Final[Mapping[str, t.DataType]] = {
    "slice": _LONG,  # the number of a slice of a key's timeline
    "reach": _LONG,  # the maximum end of the slice's forward zones
    "reach_before": _LONG,  # the maximum end of the forward zones before it
    "least_limit": _LONG,  # the minimum limit of the zones
    "least_limit_after": _LONG,  # the minimum limit of the zones after it
    "met_limit": _LONG,  # the minimum limit of the zones that other zones of the slice meet
    "early": _FLAG,  # whether a value of a chain was observed before it was written
    "doubled": _FLAG,  # whether a value was written twice, or the initial value was written
    "limits": _LONGS,  # the limits of a few zones of a key that other zones meet
}

_OF_LINKS: Final[Mapping[str, t.DataType]] = {
    "root": _LONG,  # the first value of a chain
    "path": _LONGS,  # the values of a chain up to some value
}

# The columns of queries about a few keys; the driver makes these rows.
_OF_QUESTIONS: Final[Mapping[str, t.DataType]] = {
    "until": _LONG,  # the index of the last event of a prefix
    "our_value": _LONG,  # the value of a zone that is compared with the other zones
    "our_min_end": _LONG,
    "our_low": _LONG,
    "our_high": _LONG,
    "our_limit": _LONG,
    "our_forward": _FLAG,
    "mark": t.IntegerType(),  # 0 for `after_0`, 1 for `after_1`
    "pair": _LONG,  # the number of a pair of values that contradict each other
    "began_after": _LONG,  # an index; an operation of the value begins after it
    "shown_from": _LONG,  # an index; the pair contradicts nothing before it
    "in_full": _FLAG,  # whether the query wants more of the value than its writer
    "seen_before": _LONG,  # an index; a read that ended before it is wanted too
    "at_start": _FLAG,  # whether an operation of the explanation starts at this index
    "at_end": _FLAG,  # whether an operation of the explanation ends at this index
}

TYPES: Final[Mapping[str, t.DataType]] = {
    **_OF_OPERATIONS,
    **_OF_VALUES,
    **_OF_PIECES,
    **_OF_ZONES,
    **_OF_SLICES,
    **_OF_LINKS,
    **_OF_QUESTIONS,
}


def schema_of(*names: str) -> t.StructType:
    """Returns the schema of rows with these columns.

    Raises:
        KeyError: There is no such column.
    """
    return t.StructType([t.StructField(name, TYPES[name]) for name in names])
