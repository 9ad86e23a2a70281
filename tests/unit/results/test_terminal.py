"""The terminal's summary: verdict first, reproduce line last and unbroken, and no terminal control sequences."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from harness.console.plain import one_line, plain
from harness.op import OpType
from harness.phases import Phase
from harness.verdict import Part, Verdict
from harness.watch import Sighting
from results.live.terminal import print_summary
from results.page.report import render
from results.stored.document import build
from results.words.formatting import elections, fault_availability, percent, ratio, seconds, size
from tests.examples import DEFAULT

if TYPE_CHECKING:
    from results.record.record import RunRecord


def printed(record: RunRecord, width: int, *, colour: bool = False) -> str:
    """Returns the summary of a run."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None)
    print_summary(console, build(record), report=Path("store/x/report.html"))
    return out.getvalue()


def test_the_first_line_tells_of_a_mended_build(valid_record: RunRecord) -> None:
    """A verdict about changed software must not be taken for one about the released software."""
    built = valid_record.test.artifact
    assert built is not None
    mended = replace(valid_record, test=replace(valid_record.test, artifact=replace(built, patches=["1", "4"])))
    line = f"This is {DEFAULT}-node 0.4.0 with changes, not the released one: 1, 4."
    assert line in printed(mended, 300).splitlines()[0]
    assert line not in printed(valid_record, 300)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_verdict_is_first_and_the_reproduce_line_last(stale_record: RunRecord, width: int) -> None:
    """The command can be copied whole at any width."""
    lines = printed(stale_record, width).strip().splitlines()
    assert lines[0].startswith("✗ invalid  A read missed")
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


def test_a_fault_that_never_began_has_its_reason_only(stale_record: RunRecord) -> None:
    """The reason why it has no proof is the sentence."""
    first = stale_record.faults[0]
    never = replace(first, proof=None, error="it never began, because its trigger new-leader did not fire in 6 s")
    text = printed(replace(stale_record, faults=(never,)), 300)
    assert "not proven: It never began, because its trigger new-leader did not fire in 6 s  " in text
    silent = printed(replace(stale_record, faults=(replace(never, error=None),)), 300)
    assert "not proven: there is no proof  " in silent


@pytest.mark.parametrize("width", [80, 160])
def test_what_all_left_out_is_told(valid_record: RunRecord, width: int) -> None:
    """A line for each kind, also without any fault. Nodes' messages do not control the terminal."""
    test = replace(valid_record.test, left_out={"packet-delay": "n1 lacks netem (\x1b[2J)", "crash": "no room"})
    for faults in (valid_record.faults, ()):
        text = printed(replace(valid_record, test=test, faults=faults), width)
        assert "left out   packet-delay: n1 lacks netem (\\x1b[2J)\n" in text
        assert "left out   crash: no room\n" in text
    assert "left out" not in printed(valid_record, width)


def test_the_time_beside_the_workload_is_told(valid_record: RunRecord) -> None:
    """The longest phases come first, those of the final reads with each node; a record without phases has no such line."""
    text = " ".join(printed(valid_record, 200).split())
    assert (
        "time: 9.2 s beside the workload of 60.0 s: final reads 5.0 s (n1 1.0 s, n2 1.0 s, n3 1.0 s, n4 1.0 s, n5 1.0 s), "
        in text
    )
    assert "start 3.2 s, compare replicas 1.0 s, judge 500 ms " in text
    assert "time: " not in printed(replace(valid_record, phases=()), 200)


def test_foreign_text_cannot_command_the_terminal(valid_record: RunRecord) -> None:
    """Escape sequences and rich's markup are shown as text."""
    part = Part(name="p", verdict=Verdict.INVALID, reason="bad \x1b]0;owned\x07\x9b31m [bold red]x[/] \r\n y")
    phase = Phase(name="\x1b[31m", node="\x1b]0;x\x07", start_s=0.0, end_s=1.0)
    record = replace(valid_record, parts=[part], problems=["\x1b[2J"], phases=[phase])
    text = printed(record, 200)
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "[bold red]x[/] y" in text


def test_what_was_not_measured_is_left_out_of_a_line() -> None:
    """No dash stands in a sentence, and `no ok` says that nothing was answered during the fault."""
    during = {"answered": 0, "operations": 4, "first_ok_s": None, "longest_gap_s": 1.5}
    around: dict[str, Any] = {"during": during, "after": {"sustained_ok_s": None}, "rate_share": None, "by_f": {}}
    assert fault_availability(around) == "answered 0.0 %, no ok, longest gap 1.5 s"
    during |= {"answered": 4, "first_ok_s": 0.5}
    around |= {"after": {"sustained_ok_s": 2.0}, "rate_share": 0.25}
    told = "answered 100.0 %, rate 25 % of before, first ok 500 ms, longest gap 1.5 s; ok again 2.0 s after healing"
    assert fault_availability(around) == told


def test_the_function_with_the_longest_gap_is_named(valid_record: RunRecord) -> None:
    """Reads that are answered do not hide that no write was. A function whose gap reads the same is not named."""
    template = replace(valid_record.operations[0], via=None, phase=None, scheduled_ns=None, type=OpType.OK, error=None)
    every_ns = 100_000_000
    reads = [replace(template, f="read", start_ns=n * every_ns, end_ns=n * every_ns + 1) for n in range(200)]
    writes = [replace(op, f="write") for op in reads if not 100 <= op.start_ns // every_ns < 155]
    record = replace(valid_record, operations=[*reads, *writes])
    for width in (80, 200):
        text = " ".join(printed(record, width).split())
        assert "longest gap 100 ms, and 5.6 s without an answered write; measured by all clients" in text
        assert (
            "by function: write 100.0 % answered, longest gap 5.6 s; read 100.0 % answered, longest gap 100 ms" in text
        )
    assert "without an answered" not in printed(replace(valid_record, operations=reads), 200)


def test_a_run_without_faults_has_no_table_of_them(valid_record: RunRecord) -> None:
    """Many faults are shortened, and a sentence has the number omitted."""
    without = printed(replace(valid_record, faults=()), 160)
    assert "ok again" not in without
    assert "\n\n\n" not in without
    many = [valid_record.faults[0]] * 50
    assert "and 20 more faults; results.json has all" in printed(replace(valid_record, faults=many), 160)


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
        (0, [3], "no change of leader, term 3"),
        (0, [], "no change of leader"),
        (0, [2, 3], "no new leader seen, term rose from 2 to 3"),
        (1, [3, 5], "1 change of leader, terms 3-5"),
        (4, [], "4 changes of leader"),
    ],
)
def test_leader_changes_are_said_in_few_words(changes: int, terms: list[int], expected: str) -> None:
    """The count, and the first and last term."""
    assert elections({"changes": changes, "leaders": ["n1"], "terms": terms}) == expected
    assert elections({"changes": 0, "leaders": [], "terms": []}) == "—"
    assert elections({"changes": 0, "leaders": [], "terms": [4]}) == "no leader seen, term 4"
    assert elections({"changes": 0, "leaders": [], "terms": [4, 6]}) == "no leader seen, term rose from 4 to 6"


def test_two_leaders_in_one_term_have_a_sentence(valid_record: RunRecord) -> None:
    """Also in a run without the part: the terminal and the report name both nodes, the term, and the polls."""
    claims = [Sighting(time_ns=number * 10**9, node=f"n{number}", role="leader", term=0) for number in (1, 2)]
    record = replace(valid_record, sightings=claims)
    sentence = "2 nodes reported that they led in term 0: n1 in the poll at 1.000 s, n2 in the poll at 2.000 s."
    assert f"! {sentence}" in printed(record, 200)
    assert sentence in render(record, build(record), drawn={}, logs=[])
    assert sentence not in printed(valid_record, 200)
