"""The display of a run is bounded for any history, and names what it omits."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.console.terminal import open_console
from results.live.terminal import print_summary
from results.page import bounds
from results.page.report import plots_of, render
from results.page.timeline import timeline
from results.store.document import build

if TYPE_CHECKING:
    from results.store.record import RunRecord

LONG = "a" * 500_000
MOST_BYTES = 6_000_000
MOST_S = 60.0


def page(record: RunRecord) -> tuple[str, dict[str, tuple[str, str]], str]:
    """Returns a run's report, its plots, and the terminal's output."""
    document = build(record)
    drawn = plots_of(record)
    out = io.StringIO()
    print_summary(open_console(stderr=False, file=out, width=200), document, report=None)
    return render(record, document, drawn=drawn, logs=[]), drawn, out.getvalue()


def many_functions(record: RunRecord) -> RunRecord:
    """Returns the run with a different function for each operation."""
    operations = [
        replace(op, f=f"f{number % 3000}") for number, op in enumerate([*record.operations, *record.operations])
    ]
    return replace(record, operations=operations)


def long_names(record: RunRecord) -> RunRecord:
    """Returns the run with names of half a megabyte: of a function, an error, a node, a kind of fault, a key, a process."""
    first, *others = record.operations
    odd = replace(first, f=LONG, error=LONG, node=LONG, key=LONG)
    fault = record.faults[0]
    kind = replace(fault, planned=replace(fault.planned, kind=LONG), targets=[LONG])
    return replace(
        record,
        operations=[odd, *others],
        faults=[kind, *record.faults[1:]],
        test=replace(record.test, nodes=[*record.test.nodes, LONG]),
        problems=[LONG],
    )


def many_faults(record: RunRecord) -> RunRecord:
    """Returns the run with two thousand faults of different kinds that last the whole run."""
    fault = record.faults[0]
    faults = [
        replace(fault, planned=replace(fault.planned, id=number, kind=f"k{number}"), start_ns=number, end_ns=10**10)
        for number in range(2000)
    ]
    return replace(record, faults=faults)


def many_nodes(record: RunRecord) -> RunRecord:
    """Returns the run with a different node and process for each operation."""
    operations = [replace(op, node=f"n{number}", process=number) for number, op in enumerate(record.operations)]
    return replace(record, operations=operations, test=replace(record.test, nodes=[f"n{n}" for n in range(1500)]))


@pytest.mark.parametrize(
    ("changed", "sentences"),
    [
        (
            many_functions,
            ["the 8 busiest of 3,000 functions", "the first 200 of 3,000 functions", "more functions"],
        ),
        (long_names, ["(500,000 characters)"]),
        (many_faults, ["first 100 of 2,000 faults", "faults are shaded"]),
        (many_nodes, ["nodes are too many for a picture", "lanes are left out"]),
    ],
)
def test_a_hostile_history_has_a_report(valid_record: RunRecord, changed: Any, sentences: list[str]) -> None:
    """Time and size are bounded, and a sentence names each omission."""
    began_s = time.monotonic()
    text, drawn, printed = page(changed(valid_record))
    assert time.monotonic() - began_s < MOST_S
    assert len(text) + len(printed) < MOST_BYTES
    assert len("".join(title + svg for title, svg in drawn.values())) < MOST_BYTES
    assert [words for words in sentences if words not in text + printed] == []
    assert re.search(f"a{{{bounds.MAX_TEXT + 1}}}", text + printed) is None


def test_what_is_not_too_much_is_shown_as_it_is(valid_record: RunRecord) -> None:
    """An ordinary run shows all of its functions, faults and lanes, without a sentence about bounds."""
    text, drawn, printed = page(valid_record)
    shown = text + printed + "".join(title for title, _ in drawn.values())
    sentences = (
        "busiest of",
        "faults are shaded",
        "too many for a picture",
        "lanes are left out",
        "results.json has all",
    )
    assert [words for words in sentences if words in shown] == []


def test_a_timeline_has_as_many_operations_as_it_has_lanes_for(valid_record: RunRecord) -> None:
    """Every column of the timeline's data has one entry for each shown operation."""
    record = many_nodes(valid_record)
    data = timeline(
        operations=record.operations,
        faults=record.faults,
        sightings=(),
        nodes=record.test.nodes,
        codes=record.test.codes,
        marked=[0, 5000],
    )
    assert len(data["lanes"]) == bounds.MAX_LANES
    assert {len(data[column]) for column in "sdwlpftkvei"} == {bounds.MAX_LANES}
    assert max(data["l"]) < bounds.MAX_LANES
