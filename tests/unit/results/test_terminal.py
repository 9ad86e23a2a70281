"""The terminal's summary: verdict first, reproduce line last and unbroken, and no terminal control sequences."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from harness.plain import one_line, plain
from harness.verdict import Part, Verdict
from results.document import build
from results.formatting import elections, fault_availability, percent, ratio, seconds, size
from results.terminal import print_summary

if TYPE_CHECKING:
    from results.record import RunRecord


def printed(record: RunRecord, width: int, *, colour: bool = False) -> str:
    """Returns the summary of a run."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    print_summary(console, build(record), report=Path("store/x/report.html"))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_verdict_is_first_and_the_reproduce_line_last(stale_record: RunRecord, width: int) -> None:
    """The command can be copied whole at any width."""
    lines = printed(stale_record, width).strip().splitlines()
    assert lines[0].startswith("✗ invalid  Process")
    assert lines[-1] == f"reproduce  {stale_record.test.reproduce}"
    assert lines[-2] == "report     store/x/report.html"


@pytest.mark.parametrize("width", [80, 160])
def test_every_part_and_fault_is_told(stale_record: RunRecord, width: int) -> None:
    """Every sign has a word beside it, also without colour."""
    text = printed(stale_record, width)
    for part in stale_record.parts:
        assert part.name in text
    for fault in stale_record.faults:
        assert fault.planned.kind in text
    assert "not proven:" in text
    assert "? unknown" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [80, 160])
def test_what_all_left_out_is_told(valid_record: RunRecord, width: int) -> None:
    """A line for each kind, also without any fault. Nodes' messages do not control the terminal."""
    test = replace(valid_record.test, left_out={"packet-delay": "n1 lacks netem (\x1b[2J)", "crash": "no room"})
    for faults in (valid_record.faults, ()):
        text = printed(replace(valid_record, test=test, faults=faults), width)
        assert "left out   packet-delay: n1 lacks netem (\\x1b[2J)\n" in text
        assert "left out   crash: no room\n" in text
    assert "left out" not in printed(valid_record, width)


def test_foreign_text_cannot_command_the_terminal(valid_record: RunRecord) -> None:
    """Escape sequences and rich's markup are shown as text."""
    part = Part(name="p", verdict=Verdict.INVALID, reason="bad \x1b]0;owned\x07\x9b31m [bold red]x[/] \r\n y")
    record = replace(valid_record, parts=[part], problems=["\x1b[2J"])
    text = printed(record, 200)
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "[bold red]x[/] y" in text


def test_what_was_not_measured_is_left_out_of_a_line() -> None:
    """No dash stands in a sentence, and `no ok` says that nothing was answered during the fault."""
    during = {"answered": 0, "operations": 4, "first_ok_s": None, "longest_gap_s": 1.5}
    around = {"during": during, "after": {"sustained_ok_s": None}, "rate_share": None}
    assert fault_availability(around) == "answered 0.0 %, no ok, longest gap 1.5 s"
    during |= {"answered": 4, "first_ok_s": 0.5}
    around |= {"after": {"sustained_ok_s": 2.0}, "rate_share": 0.25}
    told = "answered 100.0 %, rate 25 % of before, first ok 500 ms, longest gap 1.5 s; ok again 2.0 s after healing"
    assert fault_availability(around) == told


def test_a_run_without_faults_has_no_table_of_them(valid_record: RunRecord) -> None:
    """Many faults are shortened, and a sentence has the number omitted."""
    without = printed(replace(valid_record, faults=()), 160)
    assert "ok again" not in without
    assert "\n\n\n" not in without
    many = [valid_record.faults[0]] * 50
    assert "and 20 more faults; the report has all" in printed(replace(valid_record, faults=many), 160)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0, "0.0 s"),
        (0.0004, "< 1 ms"),
        (0.25, "250 ms"),
        (1.25, "1.2 s"),
        (599, "599.0 s"),
        (900, "15.0 min"),
    ],
)
def test_seconds_are_said_as_a_person_would(value: float | None, text: str) -> None:
    """A dash for a value that was not observed, which differs from zero."""
    assert seconds(value) == text


def test_shares_and_sizes() -> None:
    """A share without operations is not 100 %."""
    assert (percent(1, 3), percent(0, 0)) == ("33.3 %", "—")
    assert (percent(9_999_999, 10_000_000), percent(1, 10_000_000)) == ("99.9 %", "0.1 %")
    assert (percent(7, 7), percent(0, 7)) == ("100.0 %", "0.0 %")
    assert (ratio(1.254), ratio(0.0), ratio(None)) == ("125 %", "0 %", "—")
    assert (size(12), size(2048), size(5 << 20), size(3 << 30)) == ("12 B", "2.0 KiB", "5.0 MiB", "3.0 GiB")


def test_plain_text_shows_what_it_escapes() -> None:
    """Tabs and newlines stay. Every other control character becomes visible."""
    assert plain("a\tb\nc\x00\x1b\x7f\x85\ud800") == "a\tb\nc\\x00\\x1b\\x7f\\x85\\ud800"
    assert one_line(" a \n\t b\r\nc ") == "a b c"


@pytest.mark.parametrize(
    ("changes", "terms", "expected"),
    [
        (0, [3], "no change, term 3"),
        (0, [], "no change"),
        (0, [2, 3], "no new leader seen, term rose from 2 to 3"),
        (1, [3, 5], "1 change, terms 3-5"),
        (4, [], "4 changes"),
    ],
)
def test_leader_changes_are_said_in_few_words(changes: int, terms: list[int], expected: str) -> None:
    """The count, and the first and last term."""
    assert elections({"changes": changes, "leaders": ["n1"], "terms": terms}) == expected
    assert elections({"changes": 0, "leaders": [], "terms": []}) == "—"
    assert elections({"changes": 0, "leaders": [], "terms": [4]}) == "no leader seen, term 4"
    assert elections({"changes": 0, "leaders": [], "terms": [4, 6]}) == "no leader seen, term rose from 4 to 6"
