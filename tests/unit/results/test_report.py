"""The report is one file that loads nothing and has the record's facts. No content breaks it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.builds import Provenance
from harness.console.below import LINK
from harness.op import OpType
from harness.suites.thresholds import read_threshold
from harness.verdict import Part, Verdict
from results.page.report import key_names, key_pages, plots_of, render, tails
from results.record.counterexample import counterexamples_of
from results.store.store import Run
from results.stored.document import build
from results.words.formatting import percent, seconds
from tests.examples import DEFAULT
from tests.unit.results.synthetic import record as made_record

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord

HOSTILE = "</script></text><img src=x onerror=alert(1)>\"'{{7*7}}\u202e"
VOID = {"meta", "br", "input", "img", "link", "hr"}


class Page(HTMLParser):
    """Reads a page's elements, and checks their nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Records an element."""
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Records a self-closing element."""
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Closes the innermost element, which must be this one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Records text."""
        self.text.append(data)


def page_of(record: RunRecord, **changes: Any) -> str:
    """Returns a run's report, by default without plots."""
    return render(record, build(record), **{"drawn": {}, "logs": [], **changes})


def test_the_first_screen_says_it_all(stale_record: RunRecord) -> None:
    """Verdict, message, reproduce line, and each fault with its proof come before the timeline."""
    text = page_of(stale_record)
    first = text[: text.index('id="timeline"')]
    assert 'class="verdict invalid"' in first
    assert stale_record.test.reproduce in first
    assert str(stale_record.test.seed) in first
    for fault in stale_record.faults:
        assert fault.planned.kind in first
        assert fault.proof is not None
        assert fault.proof.reason in first
    assert "Why it is invalid" in first


def test_a_crossed_threshold_colours_the_first_screen(valid_record: RunRecord) -> None:
    """A valid run that crosses one is red, and the table has the measured number."""
    test = replace(valid_record.test, thresholds=(read_threshold("operations < 1"), read_threshold("ok > 1")))
    text = page_of(replace(valid_record, test=test))
    assert 'class="verdict invalid"' in text
    assert "<h1>Valid, crossed a threshold</h1>" in text
    assert f"Crossed operations &lt; 1: it is {len(valid_record.operations)}." in text
    assert text.count("✗ crossed") == text.count("✓ kept") == 1
    assert 'class="verdict valid"' in page_of(valid_record)


def test_a_counterexample_stands_above_the_faults(stale_record: RunRecord, valid_record: RunRecord) -> None:
    """Violations come before the operations. A valid run begins with the faults."""
    text = page_of(stale_record)
    assert text.index('id="counterexample"') < text.index('id="faults"') < text.index('id="timeline"')
    assert 'id="counterexample"' not in page_of(valid_record)


def test_each_invalid_key_has_a_page(stale_record: RunRecord, valid_record: RunRecord) -> None:
    """The page has the explanation, the diagram, and a timeline of its operations. The report links to it."""
    document = build(stale_record)
    ((file, text),) = key_pages(stale_record, document)
    assert file == "key-k0.html"
    assert f'<a href="{file}">The page of key k0</a>' in page_of(stale_record)
    page = Page(text)
    ids = [attrs["id"] for _, attrs in page.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert document["counterexample"]["explanation"] in "".join(page.text)
    data = json.loads(
        text[text.index(">", text.index('id="data"')) + 1 : text.index("</script>", text.index('id="data"'))]
    )
    assert data["keys"] == ["k0"]
    assert len(data["s"]) == sum(op.key == "k0" for op in stale_record.operations) < len(stale_record.operations)
    assert len(data["marked"]) == 3
    assert not re.search(r"<(link|iframe|object|embed)\b|@import|\bsrc=|https?://(?!www.w3.org)", text)
    assert list(key_pages(valid_record, build(valid_record))) == []


def with_keys(record: RunRecord, number: int) -> RunRecord:
    """Returns a run whose counterexample is that of so many keys."""
    part = next(part for part in record.parts if part.verdict is Verdict.INVALID)
    (example,) = counterexamples_of(record, part.reason)
    many = [replace(example, key=f"k{index}") for index in range(number)]
    counts = {"total": number, "during_faults": number, "after_faults": 0, "before_faults": 0}
    return replace(record, parts=[replace(part, details={**part.details, "violations": counts}, counterexamples=many)])


def test_five_other_violations_are_shown_after_the_faults(stale_record: RunRecord) -> None:
    """The others are one click away, also without a script. Each has a link to its page."""
    text = page_of(with_keys(stale_record, 57))
    assert text.index('id="counterexample"') < text.index('id="faults"') < text.index('id="others"')
    assert "k5" not in text[: text.index('id="others"')]
    section = text[text.index('id="others"') : text.index('id="timeline"')]
    shown, hidden = section.split('<details class="more"><summary>Show all 56</summary>')
    assert re.findall(r"<summary><b>(k\d+)</b>", shown) == [f"k{index}" for index in range(1, 6)]
    assert set(re.findall(r'href="key-(k\d+)\.html"', shown + hidden)) == {f"k{index}" for index in range(1, 57)}
    assert "There are 57 violations in all: 57 during a fault" in section
    few = page_of(with_keys(stale_record, 6))
    assert "Show all" not in few
    assert "<b>k5</b>" in few
    assert "5 more violations</a>, on other keys, stand after the faults" in few
    assert "1 more violation</a>, on other keys, stands after the faults" in page_of(with_keys(stale_record, 2))
    quiet = page_of(replace(with_keys(stale_record, 6), faults=[]))
    assert "There are 6 violations in all. The simplest come first." in quiet


def test_a_fault_has_the_availability_of_each_function(valid_record: RunRecord) -> None:
    """A row for each function in both windows; the whole workload has a table of its own."""
    document = build(valid_record)
    text = page_of(valid_record)
    faults = text[text.index('id="faults"') : text.index('id="timeline"')]
    for f, pair in document["faults"][0]["availability"]["by_f"].items():
        during = pair["during"]
        share = percent(during["answered"], during["operations"])
        assert f"<tr><td>{f}</td><td>{share}</td><td>{seconds(during['longest_gap_s'])}</td></tr>" in faults
    table = text[text.index('id="by-function"') :]
    for f, own in document["availability"]["by_f"].items():
        assert f"<td>{f}</td>" in table[: table.index("</table>")]
        assert f">{seconds(own['longest_gap_s'])}</td>" in table[: table.index("</table>")]


@pytest.mark.parametrize("key", ["k", "../up", "a/b", "", ".", "\ud800", "x" * 500, HOSTILE])
def test_any_key_has_the_name_of_a_file(key: str) -> None:
    """It is a file beside the report that the server accepts as a page. Each key has its own."""
    examples: Any = [SimpleNamespace(key=key_of_example) for key_of_example in (key, f"{key}!", f"{key}?")]
    names = key_names(examples)
    assert len(set(names.values())) == 3
    assert all(re.fullmatch(r"key-[A-Za-z0-9._-]{1,80}\.html", file) for file in names.values())


def test_what_all_left_out_stands_beneath_the_faults(valid_record: RunRecord) -> None:
    """Each kind with its reason, also if there was no fault. A node's message is shown as text."""
    test = replace(valid_record.test, left_out={"packet-delay": HOSTILE})
    for faults in (valid_record.faults, ()):
        text = page_of(replace(valid_record, test=test, faults=faults))
        section = text[text.index('id="faults"') : text.index('id="timeline"')]
        page = Page(section[section.index("<h2") : section.index("</section>")])
        assert "Kinds of faults that all asks for and this run left out:" in "".join(page.text)
        assert f"packet-delay: {HOSTILE}" in "".join(page.text)
    assert "left out:" not in page_of(valid_record)


def test_a_valid_run_has_no_counterexample(valid_record: RunRecord) -> None:
    """Nothing on the page refers to one."""
    text = page_of(valid_record)
    assert 'class="verdict valid"' in text
    assert "Why it is invalid" not in text
    assert "Show the violation" not in text


def test_the_page_is_well_formed(stale_record: RunRecord, stored_run: Run) -> None:
    """Every element closes, every id is unique, and every local link has a target."""
    page = Page(page_of(stale_record, drawn=plots_of(stale_record), logs=tails(stored_run)))
    ids = [attrs["id"] for _, attrs in page.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in page.found if tag == "a"]
    assert all(link is not None and (link[1:] in ids if link.startswith("#") else "/" not in link) for link in links)
    assert len([tag for tag, _ in page.found if tag == "details"]) >= 5


def test_the_page_loads_nothing(stale_record: RunRecord) -> None:
    """The page has no address, and a policy that forbids any."""
    text = page_of(stale_record, drawn=plots_of(stale_record))
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert addresses <= {"http://www.w3.org/1999/xlink"}
    assert "default-src 'none'" in text
    assert not re.search(r"<(link|iframe|object|embed)\b|@import|\bsrc=", text)


def test_what_was_built_is_told(valid_record: RunRecord) -> None:
    """The report has the whole digest and the provenance; the first line says that an artifact is not the released software."""
    built = valid_record.test.artifact
    assert built is not None
    page = page_of(valid_record, drawn={}, logs=[])
    for said in (built.digest, "commit 0a1b2c3d", "built with mvn 3.8.7"):
        assert said in page
    assert "not the released one" not in page
    mended = replace(
        valid_record, test=replace(valid_record.test, artifact=replace(built, patches=["1", "lost-entry"]))
    )
    head = page_of(mended, drawn={}, logs=[]).partition("</header>")[0]
    assert f"This is {DEFAULT}-node 0.4.0 with changes, not the released one: 1, lost-entry." in head


@pytest.mark.parametrize(
    ("system", "versions", "shown"),
    [
        ("my-store", {"labrys": "0.2.0", "my-store": "0.4.0", "my-store-node": "7a3e"}, "my-store 0.4.0"),
        ("my-store-log", {"my-store": "0.4.0", "my-store-node": "7a3e"}, "my-store-log 0.4.0"),
        ("broker-controller", {"broker": "5.3.3", "store": "0.3.1.2"}, "broker-controller 5.3.3"),
        ("two-names", {"two": "1", "two-names": "2"}, "two-names 2"),
        ("storehouse", {"store": "4.1.2"}, "storehouse"),
    ],
)
def test_the_system_has_its_version(stale_record: RunRecord, system: str, versions: dict[str, str], shown: str) -> None:
    """A system that is a view or a part of another software has the version of that software."""
    test = replace(stale_record.test, system=system, versions=versions)
    text = page_of(replace(stale_record, test=test))
    assert f"<dt>System</dt><dd>{shown}</dd>" in text
    assert test.system_version == (shown.removeprefix(system).strip() or None)


def test_foreign_text_stays_text(stale_record: RunRecord, tmp_path: Path) -> None:
    """No content of a history, a system or a log becomes an element, a script or a template."""
    hostile = [
        replace(op, key=HOSTILE, node=HOSTILE, error=HOSTILE, value=HOSTILE, f=HOSTILE, type=OpType.FAIL)
        for op in stale_record.operations[:50]
    ]
    fault = stale_record.faults[0]
    assert fault.proof is not None
    test = replace(
        stale_record.test,
        name=HOSTILE,
        reproduce=HOSTILE,
        system=HOSTILE,
        nodes=(HOSTILE, "n2"),
        versions={HOSTILE: HOSTILE},
        artifact=Provenance(
            name=HOSTILE, version=HOSTILE, digest=HOSTILE, patches=[HOSTILE], commit=HOSTILE, made=HOSTILE
        ),
        options={HOSTILE: HOSTILE},
    )
    part = Part(
        name=HOSTILE,
        verdict=Verdict.INVALID,
        reason=HOSTILE,
        details={"counterexample": [{"index": hostile[0].invoke_index}], HOSTILE: HOSTILE},
    )
    hit = replace(
        fault,
        planned=replace(fault.planned, kind=HOSTILE),
        targets=(HOSTILE,),
        details={"grudge": {HOSTILE: ["n2"]}},
        error=HOSTILE,
        proof=replace(fault.proof, reason=HOSTILE),
    )
    record = replace(
        stale_record,
        test=test,
        operations=hostile,
        parts=[part],
        faults=[hit],
        sightings=[replace(sighting, node=HOSTILE, role=HOSTILE) for sighting in stale_record.sightings[:3]],
        problems=[HOSTILE],
        timings={HOSTILE: 1.0},
    )
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "x.log").write_text(HOSTILE)
    text = page_of(record, drawn=plots_of(record), logs=tails(Run(tmp_path)))
    page = Page(text)
    assert not [attrs for tag, attrs in page.found if tag == "img" or "onerror" in attrs]
    assert len([tag for tag, _ in page.found if tag == "script"]) == 3
    assert "49" not in HOSTILE
    assert "onerror=alert(1)&gt;" in text


def test_the_timelines_data_is_read_back(stale_record: RunRecord) -> None:
    """The data element has exactly the run's timeline."""
    text = page_of(stale_record)
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    data = json.loads(match[1])
    assert len(data["s"]) == len(stale_record.operations)
    assert len(data["marked"]) == 3


def test_ten_thousand_operations_make_less_than_two_megabytes() -> None:
    """The bound includes all plots."""
    record = made_record(operations=11_500)
    assert len(record.operations) > 10_000
    assert len(page_of(record, drawn=plots_of(record)).encode()) < 2_000_000


def test_equal_runs_make_equal_pages(stale_record: RunRecord) -> None:
    """The page has no trace of the machine or the moment."""
    assert page_of(stale_record) == page_of(stale_record)


@pytest.mark.parametrize("missing", ["operations", "faults", "sightings", "parts", "problems"])
def test_a_record_with_holes_still_has_a_page(valid_record: RunRecord, missing: str) -> None:
    """A run that broke off early has a report of the available data."""
    holes: dict[str, Any] = {missing: ()}
    Page(page_of(replace(valid_record, **holes)))


def test_a_fault_that_never_began_is_told(valid_record: RunRecord) -> None:
    """It is shown with its error, and without numbers."""
    fault = replace(valid_record.faults[0], start_ns=5, end_ns=5, proof=None, error="no such program")
    text = page_of(replace(valid_record, faults=[fault]))
    assert "It never began." in text
    assert "No such program" in text
    assert "There is no proof." in text


def test_logs_are_cut_to_their_ends(tmp_path: Path) -> None:
    """Of a log of a gigabyte, a few kilobytes are read. A torn first line is omitted. A link is named, not read."""
    folder = tmp_path / "nodes" / "n1"
    folder.mkdir(parents=True)
    (folder / "big.log").write_bytes(b"".join(b"line %d\n" % i for i in range(100_000)))
    (folder / "short.log").write_bytes(b"only\xff line\n")
    (folder / "link.log").symlink_to("/etc/passwd")
    (folder / "folder.log").mkdir()
    big, link, short = tails(Run(tmp_path))
    assert (link.name, link.text) == ("link.log", f"(not read: {LINK})")
    assert (big.node, big.name, big.cut, big.lines) == ("n1", "big.log", True, 60)
    assert big.text.splitlines()[-1] == "line 99999"
    assert (short.text, short.cut) == ("only\ufffd line", False)
