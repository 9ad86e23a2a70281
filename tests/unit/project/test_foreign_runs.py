"""The folder of a run may come from anyone: no command follows a link out of it, reading or writing."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import cli
from harness.errors import ExitCode
from results.store.store import Store
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from pathlib import Path

    from results.store.store import Run

HIDDEN = "-----BEGIN OPENSSH PRIVATE KEY-----"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Runs the command line; returns its exit code and all that it wrote."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    assert "Traceback" not in captured.err
    return ended.value.code, captured.out + captured.err


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run as it was stored."""
    return store_run(Store(tmp_path_factory.mktemp("made") / "store"), record(seed=7, operations=200))


@pytest.fixture
def foreign(original: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that someone sent, beside a folder with secrets."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "id").write_text(HIDDEN)
    shutil.copytree(original.path, tmp_path / "run")
    return tmp_path / "run"


def linked(path: Path, target: Path) -> None:
    """Puts a link in the place of a file or a folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(target)


def test_a_report_shows_nothing_from_outside(capsys: pytest.CaptureFixture[str], foreign: Path) -> None:
    """Links in the place of a node's folder and of a log; the report names them and shows nothing of them."""
    linked(foreign / "nodes" / "n2", foreign.parent / "outside")
    linked(foreign / "nodes" / "n1" / "server.log", foreign.parent / "outside" / "id")
    assert run(capsys, "report", str(foreign))[0] == ExitCode.VALID
    page = (foreign / "report.html").read_text()
    assert HIDDEN not in page
    assert "a symbolic link" in page


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(("report", name) for name in ("test.json", "history.jsonl", "results.json")),
        *(("check", name) for name in ("test.json", "history.jsonl")),
        *(("replay", name) for name in ("test.json", "history.jsonl", "results.json")),
    ],
)
def test_a_file_that_is_a_link_is_refused(
    capsys: pytest.CaptureFixture[str], foreign: Path, command: str, name: str
) -> None:
    """Also where what it leads to would fit."""
    shutil.copy(foreign / name, foreign.parent / "outside" / name)
    linked(foreign / name, foreign.parent / "outside" / name)
    code, told = run(capsys, command, str(foreign))
    assert code == ExitCode.BAD_ARGUMENTS
    assert f"{name}" in told
    assert "a symbolic link" in told


def test_a_plan_that_is_a_link_is_not_replayed(capsys: pytest.CaptureFixture[str], foreign: Path) -> None:
    """The plan of a run lies in the run."""
    (foreign.parent / "outside" / "plan.json").write_text("{}")
    (foreign / "plan.json").unlink(missing_ok=True)
    (foreign / "plan.json").symlink_to(foreign.parent / "outside" / "plan.json")
    code, told = run(capsys, "replay", str(foreign))
    assert code == ExitCode.BAD_ARGUMENTS
    assert "plan.json cannot be read: a symbolic link" in told


def test_nothing_is_written_outside(capsys: pytest.CaptureFixture[str], foreign: Path) -> None:
    """A folder that is a link is refused; a file that is one is replaced, and what it led to stays."""
    outside = foreign.parent / "outside"
    linked(foreign / "report.html", outside / "id")
    assert run(capsys, "report", str(foreign))[0] == ExitCode.VALID
    assert (outside / "id").read_text() == HIDDEN
    assert not (foreign / "report.html").is_symlink()
    linked(foreign / "plots", outside)
    code, told = run(capsys, "report", str(foreign))
    assert code == ExitCode.INTERNAL
    assert "could not be written: a symbolic link" in told
    assert [path.name for path in outside.iterdir()] == ["id"]


def test_a_link_to_the_newest_run_does_not_lead_out_of_its_folder(
    capsys: pytest.CaptureFixture[str], foreign: Path
) -> None:
    """`latest` of a foreign store may name one of its own runs only."""
    store = foreign.parent / "store"
    store.mkdir()
    (store / "latest").symlink_to(foreign)
    code, told = run(capsys, "report", "latest")
    assert code == ExitCode.BAD_ARGUMENTS
    assert "neither the folder of a run nor a run in the store" in told


def test_the_logs_of_a_suite_are_not_written_through_links(capsys: pytest.CaptureFixture[str], foreign: Path) -> None:
    """A folder that is resumed may have been filled by someone else."""
    outside = foreign.parent / "outside"
    (foreign.parent / "s.toml").write_text('name = "s"\n[[test]]\nname = "a"\nrate = 1\n')
    folder = foreign.parent / "begun"
    folder.mkdir()
    document = {
        "format": "labrys-suite", "version": 1, "suite": "s", "seed": "5", "cases": [], "selected": [], "digests": {},
        "running": [], "results": {},
    }  # fmt: skip
    (folder / "suite.json").write_text(json.dumps(document))
    (folder / "a.log").symlink_to(outside / "id")
    code, told = run(capsys, "suite", "s.toml", "--resume", str(folder))
    assert code != ExitCode.VALID
    assert "a symbolic link" in told
    assert (outside / "id").read_text() == HIDDEN


def test_an_explanation_shows_nothing_from_outside(capsys: pytest.CaptureFixture[str], foreign: Path) -> None:
    """A link in the place of `explain.json` is refused where the report would read it, and never followed."""
    (foreign / "explain.json").symlink_to(foreign.parent / "outside" / "id")
    code, said = run(capsys, "explain", "run")
    assert code in {ExitCode.UNKNOWN, ExitCode.BAD_ARGUMENTS}
    assert HIDDEN not in said
