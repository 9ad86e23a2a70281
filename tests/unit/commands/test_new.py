"""`labrys new` writes whole packages, and refuses names that are not allowed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cli
from harness.console import installation, plugins
from harness.errors import ExitCode
from tests.examples import DEFAULT

ROOT = Path(__file__).parents[3]
MY_DB = plugins.Plugin(
    group=plugins.SYSTEMS, name="my-db", place="labrys_my_db.system:MyDbSystem", package="labrys-my-db"
)


def new(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Runs the command; returns its exit code and its output."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["new", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out + captured.err


@pytest.fixture(scope="module", params=["system", "workload"])
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Writes a package of each kind, with the name of a module that exists already."""
    into = tmp_path_factory.mktemp("packages")
    assert cli.invoke(["new", request.param, "json-1", "--into", str(into)]) == ExitCode.VALID
    return request.param, into / "labrys-json-1"


def inside(package: Path, *command: str) -> str:
    """Runs a module of Python in the folder of a package, which is importable. Returns its output."""
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=package, env={"PYTHONPATH": f"{ROOT}:{package}", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_tests_of_a_new_package_pass_at_once(package: tuple[str, Path]) -> None:
    """The name of the template is nowhere in the package. Its distribution and its module have a prefix."""
    kind, folder = package
    for path in folder.rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert not any(word in text + str(path.relative_to(folder)) for word in ("kv-store", "kv_store", "KvStore"))
        assert not any(word in text + str(path.relative_to(folder)) for word in ("fresh-ids", "fresh_ids"))
    about = tomllib.loads((folder / "pyproject.toml").read_text())
    suffix = kind.title()
    assert about["project"]["name"] == "labrys-json-1"
    assert about["project"]["entry-points"][f"labrys.{kind}s"] == {"json-1": f"labrys_json_1.{kind}:Json1{suffix}"}
    assert about["tool"]["setuptools"]["packages"] == ["labrys_json_1"]
    assert " passed" in inside(folder, "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert "/store/" in (folder / ".gitignore").read_text().splitlines()


def test_mypy_finds_nothing_in_a_new_package(package: tuple[str, Path], tmp_path: Path) -> None:
    """Labrys is typed, and its rooms say so to others, so a strict check knows the types of a package's base classes."""
    _, folder = package
    assert "Success: no issues found" in inside(folder, "mypy", "--strict", "--cache-dir", str(tmp_path), ".")


def test_each_room_says_that_it_has_types() -> None:
    """Without the file, mypy takes nothing of an installed package."""
    rooms = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]["python-packages"]
    assert [room for room in rooms if not (ROOT / room / "py.typed").is_file()] == []


def test_the_suite_of_a_new_system_names_its_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--dry-run` reads each test as `labrys test` does."""
    assert cli.invoke(["new", "system", "my-db", "--into", str(tmp_path)]) == ExitCode.VALID
    suite = tmp_path / "labrys-my-db" / "suites" / "nightly.toml"
    # The package is not installed, so the suite is asked for the same system at its place.
    monkeypatch.syspath_prepend(str(tmp_path / "labrys-my-db"))
    monkeypatch.setattr(
        "harness.console.plugins.plugins",
        lambda group, known=plugins.plugins: {**known(group), **({} if group != plugins.SYSTEMS else {"my-db": MY_DB})},
    )
    capsys.readouterr()
    assert cli.invoke(["suite", str(suite), "--dry-run"]) == ExitCode.VALID
    assert capsys.readouterr().out.count("--system my-db") == 2


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, ["labrys==1.2.3"]),
        ({"url": "file:///home/ana/my%20clone", "dir_info": {"editable": True}}, ["-e", "/home/ana/my clone"]),
        ({"url": "file:///home/ana/clone", "dir_info": {}}, ["/home/ana/clone"]),
        ({"url": "file:///home/ana/labrys-1.2.3.whl", "archive_info": {}}, ["/home/ana/labrys-1.2.3.whl"]),
        ({"url": "https://h.example/l.whl", "archive_info": {}}, ["labrys @ https://h.example/l.whl"]),
        (
            {"url": "https://h.example/labrys", "vcs_info": {"vcs": "git", "commit_id": "ab12"}},
            ["git+https://h.example/labrys@ab12"],
        ),
    ],
    ids=["index", "editable", "folder", "wheel", "url", "git"],
)
def test_the_same_labrys_can_be_installed_elsewhere(record: dict[str, object] | None, words: list[str]) -> None:
    """The record that pip makes of where a package comes from becomes the words for pip."""
    source = installation.parse(None if record is None else json.dumps(record), "1.2.3")
    assert list(source.words) == words
    assert source.gone == (words[-1] if words[-1].startswith("/") else None), "these paths are not here"


def test_the_next_steps_are_those_of_this_environment(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They name the Python beside which Labrys is installed, and where this Labrys came from."""
    code, output = new(capsys, "system", "my-db", "--into", str(tmp_path))
    assert code == ExitCode.VALID
    assert f"  {installation.pip()} -e '.[test]'\n" in output
    assert f"  {sys.executable} -m pytest\n" in output
    assert output.endswith(f"  pip install {shlex.join(installation.origin().words)}\n")
    assert str(ROOT) in output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("My_Db", "expected a name of lower-case letters, digits and hyphens"),
        ("a" * 41, "at most 40 characters"),
        ("../x", "expected a name"),
        ("-x", "No such option"),
        (DEFAULT, f"the package labrys has a system named {DEFAULT} already"),
        ("labrys-db", "the package gets the prefix labrys- by itself; give 'db' as its name"),
        ("there", "exists already; choose another name, or another folder with --into"),
    ],
)
def test_a_name_that_is_not_allowed_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, message: str
) -> None:
    """The message has the expected form, and no file is written."""
    (tmp_path / "labrys-there").mkdir()
    code, output = new(capsys, "system", "--into", str(tmp_path), name)
    assert code == ExitCode.BAD_ARGUMENTS
    assert message in output
    assert [path.name for path in tmp_path.rglob("*")] == ["labrys-there"]
