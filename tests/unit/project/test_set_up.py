"""What a fresh machine gets: `.ci/run` checks everything, and control.sh installs what is missing.

The stand-ins for `apt-get`, `cargo` and `make` write down what they are asked. Nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import DEFAULT
from tests.stand_ins import asked, stand_in

ROOT = Path(__file__).parents[3]
CONTROL = ROOT / "clusters" / "provision" / "control.sh"
# A machine without any package: apt knows none.
NO_PACKAGES = {"apt-get": "exit 100", "apt-cache": "exit 0"}


def run(
    command: list[str], programs: Path, *, only: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command whose programs are the stand-ins, and by default also those of this machine."""
    path = str(programs) if only else f"{programs}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("lint", "done"), [(0, ["optional", "lint", "test"]), (2, ["optional", "lint"])])
def test_ci_runs_the_linters_and_then_the_tests(tmp_path: Path, lint: int, done: list[str]) -> None:
    """The tests come last, so the last line is that of pytest; a failure of the linters ends it."""
    programs = tmp_path / "bin"
    stand_in(programs, "make", f'[ "$1" = test ] || exit {lint}\necho "1 passed"')
    control = tmp_path / "clusters" / "provision"
    control.mkdir(parents=True)
    (control / "control.sh").write_text(f'echo "$*" >>"{programs}/asked"\n')
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    ended = run(["bash", str(tmp_path / ".ci" / "run")], programs)
    assert (ended.returncode, asked(programs)) == (lint, done), ended.stderr
    if not lint:
        assert ended.stdout.splitlines()[-1] == "1 passed"


def cargo_without_clippy(programs: Path, version: str) -> None:
    """Makes a cargo of a distribution, whose linter is a package of its own, and an apt that has three such packages."""
    stand_in(programs, "id", "echo 0")
    stand_in(
        programs, "cargo", f'case "$1" in clippy) [ -e "{programs}/clippy" ] ;; *) echo "cargo {version} (x)" ;; esac'
    )
    stand_in(
        programs,
        "apt-cache",
        'case "$2" in\n'
        'rust-clippy) echo "  Candidate: 1.63.0+dfsg1-2" ;;\n'
        'rust-web-clippy) echo "  Candidate: 1.96.0+dfsg1-1~deb12u2" ;;\n'
        'rust-1.85-clippy) echo "  Candidate: 1.85.1+dfsg0ubuntu2-0ubuntu0.24.04" ;;\n'
        "*) echo '  Candidate: (none)' ;;\nesac",
    )
    stand_in(programs, "apt-get", f'case "$*" in *clippy*) touch "{programs}/clippy" ;; esac')


@pytest.mark.parametrize(
    ("cargo", "package"), [("1.96.0", "rust-web-clippy"), ("1.85.1", "rust-1.85-clippy"), ("1.90.0", None)]
)
def test_the_linter_has_the_version_of_the_compiler(tmp_path: Path, cargo: str, package: str | None) -> None:
    """Debian's cargo comes without clippy. An older clippy does not fit, so it is an error that says what to do."""
    programs = tmp_path / "bin"
    cargo_without_clippy(programs, cargo)
    ended = run(["sh", str(CONTROL), "clippy"], programs)
    installed = [line.split()[-1] for line in asked(programs) if line.startswith("install ")]
    if package:
        assert (ended.returncode, installed) == (0, [package]), ended.stderr
    else:
        assert (ended.returncode, installed) == (1, [])
        assert "clippy is needed for cargo 1.90.0" in ended.stderr


def test_programs_that_some_tests_use_are_named_where_they_cannot_be_had(tmp_path: Path) -> None:
    """It is no error: the tests skip, and say so."""
    programs = tmp_path / "bin"
    stand_in(programs, "id", "echo 0")
    for name, script in NO_PACKAGES.items():
        stand_in(programs, name, script)
    # The programs of this machine, without those two.
    for folder in os.environ["PATH"].split(":"):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = programs / program.name
            if program.name not in {"chromium", "chromium-browser", "google-chrome", "fish"} and not link.exists():
                link.symlink_to(program)
    ended = run(["sh", str(CONTROL), "optional"], programs, only=True)
    assert ended.returncode == 0, ended.stderr
    assert [line.split()[1] for line in ended.stderr.splitlines()] == ["chromium", "fish"]


def test_a_word_that_the_script_does_not_know_is_refused(tmp_path: Path) -> None:
    """Nothing is installed."""
    for name, script in NO_PACKAGES.items():
        stand_in(tmp_path / "bin", name, script)
    ended = run(["sh", str(CONTROL), "chromium"], tmp_path / "bin")
    assert (ended.returncode, ended.stderr) == (254, "usage: control.sh [clippy] [optional]\n")
    assert not (tmp_path / "bin" / "asked").exists()


def test_the_default_system_is_built_before_labrys_is_installed(tmp_path: Path) -> None:
    """`make demo` and `make dist` do so: no entry point is known yet, and Maven may be missing."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "tar", "sha256sum", "cut"):
        (programs / name).symlink_to(str(shutil.which(name)))
    code = (
        "import importlib.metadata, runpy; importlib.metadata.entry_points = lambda **_: ()\n"
        "runpy.run_module('tools.default_system', run_name='__main__')"
    )
    ended = run([sys.executable, "-c", code], programs, only=True, XDG_CACHE_HOME=str(tmp_path), PYTHONPATH=str(ROOT))
    # A clone has an artifact for its wheels after `make dist`.
    told = f"{DEFAULT}-node 0.4.0" in ended.stdout and "comes from the package" in ended.stdout
    assert told or "mvn is not on PATH" in ended.stderr, ended.stderr
    for target in ("demo", "dist"):
        steps = subprocess.run(
            ["make", "--dry-run", "--always-make", target],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        assert "python -m tools.default_system" in steps


def test_a_wheel_needs_no_tools_of_developers() -> None:
    """`make dist` builds the wheel without Spark, the linters and the tests, which take most of the time of a set-up."""
    told = subprocess.run(
        ["make", "--dry-run", "--always-make", "dist"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert "maturin build" in told
    assert "pip install" in told, "maturin itself"
    assert "spark" not in told
    assert "develop" not in told


def planned(target: str, tmp_path: Path) -> str:
    """The commands of a target of the Makefile in a fresh clone; nothing runs."""
    for name in ("Makefile", "pyproject.toml", "clusters", "checker"):
        (tmp_path / name).symlink_to(ROOT / name)
    ended = run(["make", "--dry-run", "--always-make", target], tmp_path)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_demo_installs_no_tools_of_developers(tmp_path: Path) -> None:
    """Spark and the linters are larger than all the rest; the tests and `make setup` install them."""
    demo = planned("demo", tmp_path)
    assert "deps > build/deps.txt" in demo
    assert "maturin develop" in demo
    assert "labrys test" in demo
    for tool in ("dev > build/dev.txt", "spark > build/spark.txt", "labrys build", "cargo "):
        assert tool not in demo


@pytest.mark.parametrize("target", ["test", "setup", "lint"])
def test_the_other_targets_install_what_they_need(target: str, tmp_path: Path) -> None:
    """Each extra of pyproject.toml is installed once; mypy reads Spark's types, too."""
    commands = planned(target, tmp_path)
    assert commands.count("--requirement build/dev.txt") == 1
    assert commands.count("--requirement build/spark.txt") == 1
