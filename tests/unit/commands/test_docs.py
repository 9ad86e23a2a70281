"""docs/new-system.md and docs/new-workload.md show code that runs: the code of the templates of `labrys new`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import cli
from checker.linearizable import linearizability
from harness.workload import Observed
from tests.own_models import operation
from tests.slow_faults import forget_plugins, install_slow_faults

ROOT = Path(__file__).parents[3]


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the code blocks of a page, each with its language."""
    return re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def blocks_with(page: str, words: str) -> list[str]:
    """Returns the code blocks of a page that have these words."""
    return [text.strip() for _, text in blocks(page) if words in text]


# The workload that a model judges. Another test runs it.
MODELLED = blocks_with("new-workload.md", "linearizability(")
# Code that is not in the templates.
ELSEWHERE = {'serves = {"unique-ids": "generate is POST /ids"}', *MODELLED}


@pytest.mark.parametrize(("page", "kind"), [("new-system.md", "system"), ("new-workload.md", "workload")])
def test_the_code_of_a_page_is_that_of_the_template(page: str, kind: str) -> None:
    """`test_new.py` runs the template's tests, and `test_wheel.py` a system of it on real nodes."""
    template = ROOT / "commands" / "templates" / kind
    written = [path.read_text() for path in template.rglob("*") if path.suffix in {".py", ".toml"}]
    code = [text for language, text in blocks(page) if language in {"python", "toml"}]
    assert len(code) >= 5
    for text in code:
        assert text.strip() in ELSEWHERE or any(text in each for each in written), text


@pytest.mark.parametrize("page", ["new-system.md", "new-workload.md"])
def test_the_commands_of_a_page_are_those_of_the_package(page: str) -> None:
    """Each `labrys test` line of the page is in the template's README too."""
    kind = page.removeprefix("new-").removesuffix(".md")
    readme = (ROOT / "commands" / "templates" / kind / "README.md").read_text()
    shell = [line for language, text in blocks(page) if language == "sh" for line in text.splitlines()]
    assert f"labrys new {kind} " in "\n".join(shell)
    for line in shell:
        command = line.removeprefix("sudo ")
        if command.startswith("labrys test") and "--help" not in command:
            assert command in readme, command


def test_the_fault_of_the_page_is_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists and the plan have it; an integration test injects it on real nodes."""
    install_slow_faults(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    try:
        for arguments, expected in (
            (["faults"], "low-priority"),
            (["faults", "nice"], "The nice value that the processes get."),
            (["plan", "--nemesis", "low-priority:leader", "--fault-options", "low-priority.nice=10"], '"nice": 10'),
        ):
            with pytest.raises(SystemExit) as ended:
                cli.main(arguments)
            assert (ended.value.code, expected in capsys.readouterr().out) == (0, True), arguments
    finally:
        forget_plugins()


def test_a_workload_that_a_model_judges_returns_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's `check` runs with the model of docs/checker.md."""
    (code,) = MODELLED
    (model,) = re.findall(
        r"```python\n([^`]*class MaxRegister.*?)```", (ROOT / "docs" / "checker.md").read_text(), re.DOTALL
    )
    (tmp_path / "maximum.py").write_text(model)
    monkeypatch.syspath_prepend(str(tmp_path))
    made: dict[str, Any] = {"linearizability": linearizability}
    exec(f"class Made:\n    {code}", made)  # noqa: S102 - the code of our own page
    history = [
        operation(0, "max", 5, 0, 1, None),
        operation(1, "read", None, 2, 3, 0),
    ]
    [part] = made["Made"]().check(history, Observed())
    assert (part.name, str(part.verdict)) == ("linearizable", "invalid")
