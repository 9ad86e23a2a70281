"""The columns between the steps of the pipeline: one name and one type each."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from results.pipeline.large_keys.clusters import AFTER
from results.pipeline.large_keys.columns import TYPES, schema_of
from results.pipeline.large_keys.contraction import COLUMNS, MARKS

SHORTEST = 3


def test_names_say_what_they_are() -> None:
    """No column has a name of one letter or two."""
    assert not [name for name in TYPES if len(name) < SHORTEST]


def test_pieces_of_chains_are_integers() -> None:
    """The arrays that `contraction` joins are columns of 64-bit integers here, all of them described."""
    names = ("outcome", *COLUMNS, *MARKS, *AFTER)
    assert schema_of(*names) == t.StructType([t.StructField(name, t.LongType()) for name in names])


def test_the_other_of_two_zones_has_the_same_types() -> None:
    """What is said of our zone has the type of what is said of those that it meets."""
    ours = [name for name in TYPES if name.startswith("our_")]
    assert ours
    assert {name: TYPES[name] for name in ours} == {name: TYPES[name.removeprefix("our_")] for name in ours}


def test_a_column_that_is_not_described_is_refused() -> None:
    """A schema is made only of columns that are described."""
    with pytest.raises(KeyError, match="nowhere"):
        schema_of("value", "nowhere")
