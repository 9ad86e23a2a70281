"""The pages on systems and workloads of one's own show code that runs: that of the packages that `labrys new` writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cli
from tests.slow_faults import forget_plugins, install_slow_faults

ROOT = Path(__file__).parents[3]
# Code of another package than that of the page.
ELSEWHERE = {'serves = {"unique-ids": "generate is POST /ids"}'}


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the code blocks of a page, each with its language."""
    return re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


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
    """Every `labrys` line of the page that is not `new` stands in the template's README too, or is shown by a test."""
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
    """It is listed, explained and planned; an integration test makes it on real nodes."""
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
