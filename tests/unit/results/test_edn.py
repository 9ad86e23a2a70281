"""results.edn has the content of results.json in Jepsen's terms, for any details."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checker.edn.reader import loads
from checker.edn.values import Keyword
from harness.verdict import Part, Verdict
from results.store.edn import results_edn
from results.stored.document import build

if TYPE_CHECKING:
    from results.record.record import RunRecord

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def read(record: RunRecord) -> Any:
    """Parses the text of a record."""
    return loads(results_edn(build(record)))


def test_it_speaks_jepsens_words(stale_record: RunRecord) -> None:
    """`:valid?`, keywords with dashes, types and functions as keywords."""
    document = read(stale_record)
    assert document[Keyword("valid?")] is False
    assert document[Keyword("seed")] == stale_record.test.seed
    assert document[Keyword("parts")][Keyword("faults-effective")][Keyword("valid?")] == Keyword("unknown")
    fault = document[Keyword("faults")][0]
    assert (fault[Keyword("planned")][Keyword("kind")], fault[Keyword("proof")][Keyword("effective?")]) == (
        Keyword("partition-random-halves"),
        True,
    )
    during = fault[Keyword("availability")][Keyword("during")]
    assert during[Keyword("sustained-ok-s")] is None
    read_op = document[Keyword("counterexample")][Keyword("operations")][-1]
    assert (read_op[Keyword("f")], read_op[Keyword("type")]) == (Keyword("read"), Keyword("ok"))
    assert document[Keyword("counts")][Keyword("by-f")][Keyword("cas")][Keyword("ok")] > 0


def test_each_member_has_a_line(valid_record: RunRecord) -> None:
    """The text is readable, and a diff shows the changes."""
    lines = results_edn(build(valid_record)).splitlines()
    assert len(lines) == len(build(valid_record))
    assert lines[2] == " :valid? true,"


@given(st.text(max_size=8), st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_whatever_a_part_holds_can_be_written_and_read(
    valid_record: RunRecord, name: str, details: dict[str, Any]
) -> None:
    """Keys stay distinct, and no value of JSON is lost."""
    part = Part(name=name, verdict=Verdict.UNKNOWN, reason=name, details=details)
    parts = read(replace(valid_record, parts=[part]))[Keyword("parts")]
    ((_, written),) = parts.items()
    assert written[Keyword("reason")] == name
    assert len(written[Keyword("details")]) == len(details)


@given(JSON)
def test_any_counterexample_can_be_written(valid_record: RunRecord, example: Any) -> None:
    """Its members have the names of the checker."""
    part = Part(
        name="p", verdict=Verdict.INVALID, reason="", details={"counterexample": {"a_b": 1, "a-b": 2, "x": example}}
    )
    written = read(replace(valid_record, parts=[part]))[Keyword("counterexample")]
    assert len(written) == 3


@pytest.mark.parametrize("levels", [50, 5_000, 100_000])
def test_depth_has_a_bound(valid_record: RunRecord, levels: int) -> None:
    """Details with unlimited nesting become text in every format."""
    deep: Any = "end"
    for _ in range(levels):
        deep = [deep]
    document = read(
        replace(valid_record, parts=[Part(name="p", verdict=Verdict.VALID, reason="", details={"x": deep})])
    )
    assert document[Keyword("valid?")] is True
