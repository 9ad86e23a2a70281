"""The report for the authors of a system tells what a maintainer needs, and shows hostile text as text."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import cli
from harness.console import plugins
from harness.errors import InputError
from harness.op import OpType
from harness.option_values import patch_of, repairs
from harness.promise import PromiseTested
from harness.reached import RECOVERED
from harness.verdict import Part, Verdict
from harness.watch import Sighting
from results.causes.known import Known, steps_of
from results.causes.reading import alike
from results.store.store import Store
from tests.unit.results.stored import store_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

    from results.record.record import RunRecord

HOSTILE = "<script>alert(1)</script> | [a](http://example.org) @everyone `x`"
SECTIONS = (
    "What was run", "What is promised", "What must not be", "What happened", "Faults of the run", "How often",
    "What was ruled out", "How to run it again", "Files",
)  # fmt: skip


def reported(store: Path, name: str = "latest") -> Result:
    """Runs the command."""
    return CliRunner().invoke(cli.labrys, ["report", name, "--for-authors", "--store", str(store)])


def test_it_tells_what_happened_and_how_often(tmp_path: Path, stale_record: RunRecord, valid_record: RunRecord) -> None:
    """A run of the same case that is valid counts as a trial."""
    store = Store(tmp_path)
    same_case = replace(valid_record.test, name=stale_record.test.name)
    store_run(store, replace(valid_record, test=same_case))
    later = replace(stale_record.test, started_utc=stale_record.test.started_utc + timedelta(hours=1))
    run = store_run(store, replace(stale_record, test=later))
    result = reported(tmp_path)
    assert result.exit_code == 0, result.output
    text = run.for_authors_md.read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [*SECTIONS]
    assert text.count("**This cannot be.**") == 1
    assert alike(run, later.reproduce).rate == (1, 2)
    assert "1 of 2 runs, 50.0 %" in text
    assert f"    {later.reproduce}" in text


def test_a_violation_without_a_moment_has_what_came_after_the_faults(tmp_path: Path, valid_record: RunRecord) -> None:
    """It tells when operations succeeded, and with what they ended until then; progress was no other cause."""
    down = Part(name=RECOVERED, verdict=Verdict.INVALID, reason="The system did not work again.", details={})
    progress = Part(name="progress", verdict=Verdict.UNKNOWN, reason="No operation succeeded.", details={})
    others = [part for part in valid_record.parts if part.name not in {RECOVERED, "progress"}]
    [fault] = valid_record.faults[:1]
    failed = [
        replace(each, type=OpType.FAIL, error="no-leader") if each.start_ns >= fault.start_ns else each
        for each in valid_record.operations
    ]
    seen = [Sighting(time_ns=0, node="n1", role="follower", term=3, leader="n2", until_ns=fault.end_ns)]
    record = replace(
        valid_record, parts=[*others, down, progress], operations=failed, faults=[replace(fault, end_ns=fault.start_ns + 1)],
        sightings=seen,
    )  # fmt: skip
    run = store_run(Store(tmp_path), record)
    assert reported(tmp_path).exit_code == 0
    text = run.for_authors_md.read_text()
    assert "(Labrys calls this check <code>recovered</code>.)" in text
    section = text.partition("## After the last fault\n\n")[2].partition("\n\n##")[0]
    assert " to the end." in section
    assert "ended with <code>no-leader</code>." in section
    assert (
        "The state of <code>n1</code> that lasted longest: <code>follower</code> in term 3, with <code>n2</code>"
        in section
    )
    assert "not ruled out" not in text


def test_foreign_text_stays_text(tmp_path: Path, stale_record: RunRecord) -> None:
    """No reason, name, promise or command becomes markup, and a line break in a command does not end its block."""
    parts = [replace(part, reason=HOSTILE) if part.verdict is Verdict.INVALID else part for part in stale_record.parts]
    tested = PromiseTested(promise=HOSTILE, source=HOSTILE, others=(HOSTILE,))
    test = replace(
        stale_record.test, tested=tested, versions={HOSTILE: HOSTILE}, reproduce=f"labrys test\n\n{HOSTILE}\x1b[2J"
    )
    run = store_run(Store(tmp_path), replace(stale_record, parts=parts, test=test))
    assert reported(tmp_path).exit_code == 0
    text = run.for_authors_md.read_text()
    (command,) = [line for line in text.splitlines() if "<script>" in line]
    assert command.startswith("    labrys test <script>")
    assert "\x1b" not in text
    assert "@everyone" not in text.replace(command, "")
    assert "[a]" not in text.replace(command, "")


@pytest.mark.parametrize("name", ["latest", "missing"])
def test_only_an_invalid_run_has_one(tmp_path: Path, valid_record: RunRecord, name: str) -> None:
    """The error says what the run is."""
    store_run(Store(tmp_path), valid_record)
    result = reported(tmp_path, name)
    assert isinstance(result.exception, InputError)
    assert ("only of an invalid run" in str(result.exception)) is (name == "latest")


def test_steps_come_from_the_known_cause_that_the_run_matches(tmp_path: Path, stale_record: RunRecord) -> None:
    """They are the section of that heading, with what is below it; a heading in a block of code is none."""
    run = store_run(Store(tmp_path / "store"), stale_record)
    case = alike(run, "").case
    assert case is not None
    known, page = tmp_path / "known", tmp_path / "finding.md"
    known.mkdir()
    page.write_text(
        "# A finding\n\n## Steps\n\nOne node.\n\n```\n# zkCli.sh\n```\n\n### Then\n\nStop it.\n\n## Cause\n\nHidden.\n"
    )
    entry = (
        'link = "https://example.org/1"\nexpires = "2027-01-01"\nsteps = "{}"\nsignatures = ["'
        + case.symptom.key
        + '"]\n'
    )
    (known / "one.toml").write_text(entry.format("finding.md"))
    words = ["report", "latest", "--for-authors", "--store", str(tmp_path / "store"), "--known", str(known)]
    assert CliRunner().invoke(cli.labrys, words).exit_code == 0
    text = run.for_authors_md.read_text()
    steps = text.partition("## Steps with the system's own tools\n\n")[2].partition("\n\n## How to run it again")[0]
    assert steps == "One node.\n\n```\n# zkCli.sh\n```\n\n### Then\n\nStop it."
    assert "Hidden" not in text
    assert "has no steps" not in text
    page.write_text("# A finding\n")
    assert "expected a heading `Steps`" in str(CliRunner().invoke(cli.labrys, words).exception)
    for bad in ("../finding.md", "/etc/passwd", "missing.md"):
        (known / "one.toml").write_text(entry.format(bad))
        assert isinstance(CliRunner().invoke(cli.labrys, words).exception, InputError), bad


def causes() -> Iterator[tuple[str, str, str]]:
    """Yields each system with a cause that it may know, and the patch; none for a cause that it does not know."""
    yield "gone", "--mend 8", ""
    for name, plugin in plugins.plugins(plugins.SYSTEMS).items():
        options = plugin.load().Options()
        yield name, "--mend 0", ""
        known = repairs(type(options), {field.name: getattr(options, field.name) for field in fields(options)})
        patches = {cause: patch for cause in known if (patch := patch_of(options, cause))}
        if patches:
            yield name, *next(iter(patches.items()))


def test_the_patch_is_that_of_the_known_cause(tmp_path: Path, stale_record: RunRecord) -> None:
    """A cause that the system has no patch for, and a system that is not installed, have none."""
    known = tmp_path / "known"
    known.mkdir()
    files = {path.read_text() for path in (Path(cli.__file__).parent / "clusters/systems").rglob("*.patch")}
    having = 0
    for system, cause, patch in causes():
        test = replace(stale_record.test, system=system, options={})
        run = store_run(Store(tmp_path / system), replace(stale_record, test=test))
        case = alike(run, "").case
        assert case is not None
        (known / "one.toml").write_text(
            f'link = "x"\nexpires = "2027-01-01"\ncause = "{cause}"\nsignatures = ["{case.symptom.key}"]\n'
        )
        words = ["report", "latest", "--for-authors", "--store", str(tmp_path / system), "--known", str(known)]
        assert CliRunner().invoke(cli.labrys, words).exit_code == 0
        text = run.for_authors_md.read_text()
        assert ("## A patch" in text) is bool(patch), (system, cause)
        if patch:
            having += 1
            assert text.partition("```diff\n")[2].partition("```\n")[0] == patch
            assert patch in files
    assert having >= 2


def test_the_reports_of_findings_have_steps() -> None:
    """A known cause can name each of them."""
    pages = sorted((Path(cli.__file__).parent / "clusters/systems").glob("*/findings/upstream/[!R]*.md"))
    assert len(pages) >= 26
    for page in pages:
        entry = Known(name="x", link="", signatures=frozenset(), expires=date(2027, 1, 1), steps=page)
        assert len(steps_of(entry)) > 100, page
        assert "## " not in steps_of(entry), page
