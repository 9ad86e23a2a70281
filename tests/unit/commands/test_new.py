"""`labrys new` writes whole packages, and refuses names that are not allowed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cli
from harness.errors import ExitCode

ROOT = Path(__file__).parents[3]


def new(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Runs the command; returns its exit code and its output."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["new", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out + captured.err


@pytest.mark.parametrize(("kind", "suffix"), [("system", "System"), ("workload", "Workload")])
def test_the_tests_of_a_new_package_pass_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str, suffix: str
) -> None:
    """The name of the template is nowhere in the package."""
    code, output = new(capsys, kind, "my-own-1", "--into", str(tmp_path))
    assert code == ExitCode.VALID, output
    package = tmp_path / "my-own-1"
    for path in package.rglob("*.*"):
        text = path.read_text() if path.is_file() else ""
        assert not any(word in text + str(path.relative_to(tmp_path)) for word in ("kv-store", "kv_store", "KvStore"))
        assert not any(word in text + str(path.relative_to(tmp_path)) for word in ("unique-ids", "unique_ids"))
    about = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    assert about["entry-points"][f"labrys.{kind}s"] == {"my-own-1": f"my_own_1.{kind}:MyOwn1{suffix}"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=package, env={"PYTHONPATH": f"{ROOT}:{package}", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " passed" in ended.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("My_Db", "expected a name of lower-case letters, digits and hyphens"),
        ("a" * 41, "at most 40 characters"),
        ("../x", "expected a name"),
        ("-x", "No such option"),
        ("dledger", "the package labrys has a system named dledger already"),
        ("json", "a module json exists already"),
        ("import", "a module import exists already"),
        ("harness", "a module harness exists already"),
        ("there", "exists already; choose another name, or another folder with --into"),
    ],
)
def test_a_name_that_is_not_allowed_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, message: str
) -> None:
    """The message has the expected form, and no file is written."""
    (tmp_path / "there").mkdir()
    code, output = new(capsys, "system", "--into", str(tmp_path), name)
    assert code == ExitCode.BAD_ARGUMENTS
    assert message in output
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]
