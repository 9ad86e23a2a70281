"""`labrys build`: the artifact of a system, and where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cli
from harness.errors import ExitCode
from tests.examples import SIMULATED

SYSTEM = """
from pathlib import Path

from harness.builds import Build
from harness.declare import option
from harness.system import OneServiceSystem
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    release: int = option(3, "The release.", low=1, high=9)
    mend: bool = option(False, "Whether the entry is kept.")


class Built(OneServiceSystem):
    name = "built"
    summary = "A system that builds."
    Options = Options
    role = "node"

    @classmethod
    def build(cls, options, say):
        return Build(
            name="built", version=str(options.release), sources=Path(__file__).parent, files=("source",),
            command=("cp", "source", f"made-{options.release}"), product=f"made-{options.release}",
            patches=("lost-entry",) if options.mend else (),
        ).artifact(say)
"""


@pytest.fixture(autouse=True)
def _system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system in the working folder, and a cache of the test's own."""
    (tmp_path / "made_here.py").write_text(SYSTEM)
    (tmp_path / "source").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def labrys(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Runs a command that succeeds; returns its output and its messages."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["build", *arguments])
    told = capsys.readouterr()
    assert ended.value.code == 0, told.err
    return told.out, told.err


def test_the_options_of_the_system_decide(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output has the folder; standard error says what went on; a second command takes it from the cache."""
    out, err = labrys(capsys, "--system", "made_here:Built", "--release", "4")
    assert [path.name for path in Path(out.strip()).iterdir()] == ["made-4"]
    assert "building built 4; later runs take it from the cache" in err
    again, err = labrys(capsys, "--system", "made_here:Built", "--release", "4")
    assert again == out
    assert "comes from the cache" in err


def test_the_provenance_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It has the path, the digest, and the patches; `--into` copies the artifact for a package."""
    out, _ = labrys(
        capsys, "--system", "made_here:Built", "--mend", "--format", "json", "--into", str(tmp_path / "shelf")
    )
    told = json.loads(out)
    assert told["patches"] == ["lost-entry"]
    assert len(told["digest"]) == 64
    assert [path.name for path in (tmp_path / "shelf").glob("*/tree/*")] == ["made-3"]


def test_a_system_that_builds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A simulated system has no artifact, and that is no error."""
    assert labrys(capsys, "--system", SIMULATED) == ("", f"the system {SIMULATED} builds nothing\n")
    assert labrys(capsys, "--system", SIMULATED, "--format", "json") == ("null\n", "")


def test_a_system_that_the_simulator_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    """`--cluster sim` builds what the simulator needs too, so it refuses a system that does not run there."""
    Path("made_elsewhere.py").write_text(f"{SYSTEM}\n    not_by_seed = 'it has a clock of its own'\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["build", "--cluster", "sim", "--system", "made_elsewhere:Built"])
    assert ended.value.code == ExitCode.BAD_ARGUMENTS
    assert (
        "the system made_elsewhere:Built does not run in the simulator: it has a clock of its own"
        in capsys.readouterr().err
    )
    assert labrys(capsys, "--cluster", "sim", "--system", SIMULATED) == ("", f"the system {SIMULATED} builds nothing\n")
