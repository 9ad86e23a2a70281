"""`labrys suite NAME` finds the suites in the folders of installed systems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import cli
from harness.console import plugins, system_suites
from harness.console.plugins import SYSTEMS, Plugin
from harness.errors import ExitCode, InputError

if TYPE_CHECKING:
    from pathlib import Path


def package(folder: Path, name: str, *suites: str, body: str = "") -> dict[str, Plugin]:
    """Writes a package with the module `system` and some suites. Returns its system by name."""
    (folder / name / "suites").mkdir(parents=True)
    (folder / name / "__init__.py").write_text(body)
    (folder / name / "system.py").touch()
    for suite in suites:
        (folder / name / "suites" / f"{suite}.toml").touch()
    return {name: Plugin(group=SYSTEMS, name=name, place=f"{name}.system:System", package=name)}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two packages with suites, a broken one, and a module without a package. Returns their folder."""
    packages = {
        **package(tmp_path, "suited_one", "one", "both"),
        **package(tmp_path, "suited_two", "two", "both"),
        **package(tmp_path, "suited_broken", "broken", body="raise RuntimeError"),
    }
    (tmp_path / "suited_module.py").touch()
    packages["alone"] = Plugin(group=SYSTEMS, name="alone", place="suited_module:System", package="alone")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(plugins, "plugins", lambda _: packages)
    return tmp_path


def test_a_name_is_that_of_a_file_in_the_folder_of_a_system(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is relative to the working folder if it is there. A broken package affects no other one."""
    assert list(system_suites.suites()) == ["both", "one", "two"]
    assert system_suites.suite_named("two") == installed / "suited_two" / "suites" / "two.toml"
    monkeypatch.chdir(installed)
    assert str(system_suites.suite_named("two")) == "suited_two/suites/two.toml"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tow", "found tow. Did you mean 'two'? The suites of the installed systems are both, one, two"),
        ("broken", "found broken. The suites of the installed systems are both, one, two"),
        ("both", "several systems have a suite named both: "),
    ],
)
def test_an_unknown_name_is_refused_with_all_names(installed: Path, name: str, message: str) -> None:
    """And so is a name that says no single suite."""
    assert installed.is_dir()
    with pytest.raises(InputError, match=re.escape(message)):
        system_suites.suite_named(name)


def test_a_file_or_a_folder_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text with a slash or the suffix is a path, even if nothing is there."""
    monkeypatch.chdir(tmp_path)
    assert system_suites.is_name("regressions")
    (tmp_path / "regressions").mkdir()
    assert [text for text in ("regressions", "./x", "x.toml", "") if system_suites.is_name(text)] == []


def test_the_command_takes_a_name_and_its_help_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outside of the repository too."""
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["suite", "gossip-glomers", "--dry-run"]) == ExitCode.VALID
    assert "gossip-glomers" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["suite", "--help"])
    _, _, names = capsys.readouterr().out.partition("Suites of the installed systems:")
    assert names.replace("\n", " ").replace(" ", "").split(",") == list(system_suites.suites())
    with pytest.raises(SystemExit) as ended:
        cli.main(["suite", "gossip-glomer"])
    assert ended.value.code == ExitCode.BAD_ARGUMENTS
    assert "Did you mean 'gossip-glomers'?" in capsys.readouterr().err
