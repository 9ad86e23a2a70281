"""`labrys new node` writes programs that pass, in each language and for each workload."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import cli
from commands.setup.new import PROGRAMS, Language, NodeWorkload
from harness.console.documents import parse_json
from harness.errors import ExitCode
from tests.examples import PIPED

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = {Language.PYTHON: "python3", Language.RUST: "cargo", Language.GO: "go", Language.JAVASCRIPT: "node"}
BUILD_S = 600


def called(*arguments: str) -> int:
    """Runs a command of Labrys; returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def made(language: Language, workload: NodeWorkload, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes a program and builds it with the command that the README names; its folder is the working folder then."""
    tool = TOOLS[language]
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    assert (
        called("new", "node", "my-node", "--language", str(language), "--workload", str(workload), "--into", str(into))
        == ExitCode.VALID
    )
    folder = into / "my-node"
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}
    assert not any(
        word in text for text in texts.values() for word in ("first-node", "the-program", "build-it", "the-system")
    )
    program, build = (text.format("my-node") for text in PROGRAMS[language])
    assert f"    {build}\n" in texts[folder / "README.md"]
    monkeypatch.chdir(folder)
    if language is Language.RUST:
        fetched = subprocess.run(["cargo", "fetch"], capture_output=True, text=True, check=False, timeout=BUILD_S)
        if fetched.returncode:
            pytest.skip(f"cargo cannot fetch serde_json: {fetched.stderr[-200:]}")
    subprocess.run(shlex.split(build), check=True, timeout=BUILD_S)
    assert os.access(program, os.X_OK)


@pytest.mark.parametrize(
    "language",
    [
        Language.PYTHON,
        Language.JAVASCRIPT,
        pytest.param(Language.GO, marks=pytest.mark.night),
        pytest.param(Language.RUST, marks=pytest.mark.night),
    ],
)
def test_a_new_node_answers_and_its_seed_repeats_it(
    language: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program of the workload echo keeps to the protocol, and no thread of its language disturbs virtual time."""
    made(language, NodeWorkload.ECHO, tmp_path, monkeypatch)
    program = PROGRAMS[language][0].format("my-node")
    code = called(
        "test", "--cluster", "pipes", "--virtual", "--system", PIPED, "--bin", f"./{program}", "--workload", "echo",
        "--nodes", "1", "--time-limit", "1", "--nemesis", "", "--seed", "1", "--rate", "20",
    )  # fmt: skip
    capsys.readouterr()
    (results,) = tmp_path.glob("my-node/store/*/2*/results.json")
    parts = parse_json(results.read_bytes(), str(results))["parts"]
    assert (code, parts["echo"]["valid"], parts["protocol"]["valid"]) == (ExitCode.VALID, True, True)
    assert parts["repeatable"]["valid"] is True, parts["repeatable"]["reason"]
    (log,) = results.parent.glob("nodes/n0/node.log")
    assert "as fast as real time" not in log.read_text(encoding="utf-8")


@pytest.mark.night
@pytest.mark.parametrize("workload", list(NodeWorkload))
@pytest.mark.parametrize("language", list(Language))
def test_the_suite_of_a_new_node_passes(
    language: Language, workload: NodeWorkload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case is valid with its faults, and repeatable."""
    made(language, workload, tmp_path, monkeypatch)
    assert called("suite", "suite.toml", "--seed", "1") == ExitCode.VALID
    files = list(tmp_path.glob("my-node/store/*/2*/results.json"))
    assert files
    for results in files:
        part = parse_json(results.read_bytes(), str(results))["parts"]["repeatable"]
        assert part["valid"] is True, part["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("My_Node", "--language", "go"), "expected a name of lower-case letters, digits and hyphens"),
        (("my-node",), "--language"),
        (("my-node", "--language", "cobol"), "is not one of the choices"),
        (("my-node", "--language", "go", "--workload", "register"), "is not one of the choices"),
    ],
)
def test_what_no_template_has_is_refused(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names what is wrong, and nothing is written."""
    assert called("new", "node", *arguments, "--into", str(tmp_path)) == ExitCode.BAD_ARGUMENTS
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())
