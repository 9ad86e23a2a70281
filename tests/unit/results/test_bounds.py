"""The display of a run is bounded for any history, and names what it omits."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.console.terminal import open_console
from results.live.terminal import print_summary
from results.measure.series import Shade
from results.measure.series import shades as shades_of
from results.page.report import plots_of, render
from results.page.timeline import timeline
from results.stored.document import build
from results.words import bounds

if TYPE_CHECKING:
    from results.record.record import RunRecord

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
    kind = replace(fault, planned=replace(fault.planned, kind=LONG), targets=(LONG,))
    return replace(
        record,
        operations=[odd, *others],
        faults=[kind, *record.faults[1:]],
        test=replace(record.test, nodes=(*record.test.nodes, LONG)),
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
    return replace(record, operations=operations, test=replace(record.test, nodes=tuple(f"n{n}" for n in range(1500))))


@pytest.mark.parametrize(
    ("changed", "sentences"),
    [
        (
            many_functions,
            ["the 8 busiest of 3,000 functions", "the first 200 of 3,000 functions", "more functions"],
        ),
        (long_names, ["(500,000 characters)"]),
        (many_faults, ["first 100 of 2,000 faults", "faults of the first 16 of 2,000 kinds are shaded"]),
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
        "kinds are shaded",
        "shaded as one",
        "too many for a picture",
        "lanes are left out",
        "results.json has all",
    )
    assert [words for words in sentences if words in shown] == []


stretches = st.lists(
    st.builds(
        lambda kind, effective, start_s, length_s: Shade(
            kind=kind, start_s=start_s, end_s=start_s + length_s, effective=effective
        ),
        st.sampled_from("ab"), st.booleans(), st.floats(0, 1_000), st.floats(0.001, 5),
    ),
    min_size=1,
    max_size=400,
)  # fmt: skip


@given(stretches)
def test_every_fault_is_shaded(shades: list[Shade]) -> None:
    """Each fault lies in a stretch of its kind. A stretch has nothing else but gaps of the length that the note names."""
    shown, note = bounds.shown_shades(shades)
    for shade in shades:
        (whole,) = [
            span
            for span in shown
            if (span.kind, span.effective) == (shade.kind, shade.effective)
            and span.start_s <= shade.start_s
            and shade.end_s <= span.end_s
        ]
        assert whole.end_s in {own_shade.end_s for own_shade in shades}
    gap_s = max(shade.end_s for shade in shades) / bounds.PLACES
    assert (f"faults less than {gap_s:.2g} s apart are shaded as one" in note) == (note != "")
    for span in shown:
        own = sorted(
            (shade.start_s, shade.end_s)
            for shade in shades
            if (shade.kind, shade.effective) == (span.kind, span.effective)
            and span.start_s <= shade.start_s <= span.end_s
        )
        end_s = own[0][1]
        for start_s, until_s in own[1:]:
            assert start_s - end_s <= (gap_s if note else 0)
            end_s = max(end_s, until_s)


def test_many_faults_are_shaded_to_the_end(valid_record: RunRecord) -> None:
    """Of 395 faults in a row, the last one is shaded in each panel, as the first one is, without a note."""
    fault, second = valid_record.faults[0], 10**9
    faults = [
        replace(
            fault, planned=replace(fault.planned, id=number), start_ns=2 * number * second, end_ns=(2 * number + 1) * second
        )
        for number in range(395)
    ]  # fmt: skip
    shown, note = bounds.shown_shades(list(shades_of(faults)))
    assert (len(shown), shown[-1].end_s, note) == (395, 789.0, "")
    title, svg = plots_of(replace(valid_record, faults=faults))["rate"]
    assert "faults" not in title
    fills = [shape for shape in re.findall(r'<path d="([^"]*)"', svg) if shape.count("z") == 395]
    assert len(fills) >= 4  # the lane, and a panel for each function


def test_a_hundred_thousand_faults_are_shaded_in_few_stretches() -> None:
    """The note tells how short a time between two faults is not drawn."""
    crowd = [Shade(kind="kill", start_s=at / 10, end_s=at / 10 + 0.02) for at in range(100_000)]
    shown, note = bounds.shown_shades(crowd)
    assert len(shown) <= bounds.MAX_SHADES
    assert (shown[0].start_s, shown[-1].end_s) == (0.0, crowd[-1].end_s)
    assert note == "; faults less than 5 s apart are shaded as one"


@pytest.mark.parametrize("start_s", [0.0, 1.0])
def test_faults_that_end_before_they_begin_are_shaded_in_few_stretches(start_s: float) -> None:
    """A foreign history may have them."""
    odd = [Shade(kind="kill", start_s=start_s * number, end_s=0.0) for number in range(5_000)]
    assert len(bounds.shown_shades(odd)[0]) <= bounds.MAX_SHADES


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
