"""docs/guide/new-system.md and docs/guide/new-workload.md show code that runs: the code of the templates of `labrys new`."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cli
from checker.linearizable import linearizability
from harness import combinators
from harness.builds import Build
from harness.client import Client
from harness.combinators import limit
from harness.console import plugins
from harness.daemon import Daemon
from harness.load import ClosedLoop
from harness.op import OpType
from harness.service import NodeStatus, ReplicaState, Service
from harness.system import System
from harness.testing import simulate
from harness.traits import Program
from harness.workload import Observed
from tests.examples import DEFAULT, SIMULATED
from tests.own_models import operation
from tests.slow_faults import forget_plugins, install_slow_faults
from tests.stand_ins import stand_in
from tools import site, tables

ROOT = Path(__file__).parents[3]


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the code blocks of a page, each with its language."""
    return re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def blocks_with(page: str, words: str) -> list[str]:
    """Returns the code blocks of a page that have these words."""
    return [text.strip() for _, text in blocks(page) if words in text]


# The system that reads the options of its workload. `test_choosing.py` runs one.
LEASES = blocks_with("guide/new-system.md", "self.workload_options.lease_s")
# The workload that a model judges. Another test runs it.
MODELLED = blocks_with("guide/new-workload.md", "linearizability(")
# The system that builds its software.
BUILT = blocks_with("guide/new-system.md", "def build(cls")
# The generator of the page, in two blocks. Another test runs it.
COMBINED = [
    *blocks_with("guide/new-workload.md", "def operations(stream):"),
    *blocks_with("guide/new-workload.md", "phases(\n"),
]
# Code that is not in the templates.
ELSEWHERE = {'serves = {"fresh-ids": "generate is POST /ids"}', *MODELLED, *LEASES, *BUILT, *COMBINED}


@pytest.mark.parametrize(("page", "kind"), [("guide/new-system.md", "system"), ("guide/new-workload.md", "workload")])
def test_the_code_of_a_page_is_that_of_the_template(page: str, kind: str) -> None:
    """`test_new.py` runs the template's tests, and `test_wheel.py` a system of it on real nodes."""
    template = ROOT / "commands" / "templates" / kind
    written = [path.read_text() for path in template.rglob("*") if path.suffix in {".py", ".toml"}]
    written.append((ROOT / "tests" / "watched_store.py").read_text())  # the example of a system with two services
    written.append(
        Path(inspect.getfile(plugins.load(plugins.SYSTEMS, SIMULATED))).read_text()
    )  # the example of lines of logs
    code = [text for language, text in blocks(page) if language in {"python", "toml"}]
    assert len(code) >= 5
    for text in code:
        assert text.strip() in ELSEWHERE or any(text in source for source in written), text


def test_the_code_of_another_library_is_that_of_the_example() -> None:
    """`tests/integration/jvm/test_sockets.py` runs the example."""
    example = ROOT / "examples" / "microraft"
    written = [path.read_text() for path in (example / "system.py", *example.glob("src/**/*.java"))]
    code = [text for language, text in blocks("guide/real-code-by-seed.md") if language in {"java", "python"}]
    assert len(code) == 5
    for text in code:
        lines = [line.strip() for line in text.strip().splitlines()]
        assert any("\n".join(lines) in "\n".join(line.strip() for line in source.splitlines()) for source in written), (
            text
        )


@pytest.mark.parametrize("page", ["guide/new-system.md", "guide/new-workload.md"])
def test_the_commands_of_a_page_are_those_of_the_package(page: str) -> None:
    """Each `labrys test` line of the page is in the template's README too."""
    kind = page.removeprefix("guide/new-").removesuffix(".md")
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
            (["plan", "--nemesis", "low-priority:leader", "--fault-options", "low-priority.nice=10"], "nice=10"),
        ):
            with pytest.raises(SystemExit) as ended:
                cli.main(arguments)
            assert (ended.value.code, expected in capsys.readouterr().out) == (0, True), arguments
    finally:
        forget_plugins()


def test_the_fault_of_the_page_can_stand_in_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--fault` adds its kinds for the names of `--nemesis`, and no file of defaults can do that."""
    (code,) = blocks_with("guide/new-fault.md", "class LowPriority")
    (tmp_path / "nemesis").mkdir()
    (tmp_path / "nemesis" / "slow.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    where = ["--fault", "nemesis/slow.py:KINDS"]
    try:
        for arguments, code_of, expected in (
            (["plan", "--nemesis", "nice"], 254, "A kind in a file of your own needs --fault FILE.py:NAME."),
            (["plan", "--nemesis", "low-priority:leader", "--seed", "1", *where], 0, " ".join(where)),
            (["faults", "nice", *where], 0, "The nice value that the processes get."),
            (
                ["faults", "--fault", "nemesis/slow.py:NICE_FIELD"],
                254,
                "cannot be loaded from nemesis/slow.py:NICE_FIELD",
            ),
        ):
            with pytest.raises(SystemExit) as ended:
                cli.main(arguments)
            printed = " ".join("".join(capsys.readouterr()).split())
            assert (ended.value.code, expected in printed) == (code_of, True), printed
        forget_plugins()
        (tmp_path / "labrys.toml").write_text('[test]\nfault = "nemesis/slow.py:KINDS"\n')
        with pytest.raises(SystemExit):
            cli.main(["plan"])
        assert "is a FILE.py:CLASS, which labrys never takes from a file" in " ".join(capsys.readouterr().err.split())
    finally:
        forget_plugins()


def test_a_workload_that_a_model_judges_returns_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's `check` runs with the model of docs/guide/new-model.md."""
    (code,) = MODELLED
    (model,) = re.findall(
        r"```python\n([^`]*class MaxRegister.*?)```",
        (ROOT / "docs" / "guide" / "new-model.md").read_text(),
        re.DOTALL,
    )
    (tmp_path / "maximum.py").write_text(model)
    monkeypatch.syspath_prepend(str(tmp_path))
    made: dict[str, Any] = {"linearizability": linearizability, "__name__": "maximum"}
    exec(f"class Made:\n    {code}", made)  # noqa: S102 - the code of our own page
    history = [
        operation(0, "max", 5, 0, 1, None),
        operation(1, "read", None, 2, 3, 0),
    ]
    [part] = made["Made"]().check(history, Observed())
    assert (part.name, str(part.verdict)) == ("linearizable", "invalid")


def test_the_tables_of_the_pages_are_made_from_the_code() -> None:
    """After a change of a kind, a measure or another row, `python tools/tables.py` writes the tables again."""
    used = set()
    for page in site.pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        used |= {match[1] for match in tables.TABLE.findall(text)}
        assert text == tables.written(text), f"{page}: run: python tools/tables.py"
    assert used == set(tables.TABLES)


@pytest.mark.parametrize("workload", ["log", "queue", "lock", "set"])
def test_the_table_of_a_judge_has_every_word_for_what_it_finds(workload: str) -> None:
    """The list is in the judge's docstring, and the words are in the code beside it."""
    judge = importlib.import_module(f"workloads.{workload}.judge")
    code = "".join(path.read_text() for path in (ROOT / "workloads" / workload).glob("*.py"))
    listed = set(tables.kinds_of(judge))
    assert set(re.findall(r'kind="([\w-]+)"', code)) - {"stable"} <= listed  # numpy has a kind of sorting
    assert len(listed) >= 4
    assert all(f'"{kind}"' in code for kind in listed), listed


def test_the_build_of_the_page_makes_an_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's `build` runs its command with the tool that it names; `install` gives the folder to the node."""
    (code,) = BUILT
    stand_in(
        tmp_path / "bin", "go", 'case "$1" in version) echo go version go1.23.4 ;; *) cat go.mod *.go >"$3" ;; esac'
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "go").mkdir()
    for name in ("go.mod", "main.go"):
        (tmp_path / "go" / name).write_text(f"{name}\n")
    made: dict[str, Any] = {"__file__": str(tmp_path / "system.py"), "Path": Path, "Program": Program, "Build": Build}
    exec(f"from __future__ import annotations\nclass Made:\n    {code}", made)  # noqa: S102 - the code of our own page
    artifact = made["Made"].build(None, print)
    assert (artifact.path / "my-store").read_text() == "go.mod\nmain.go\n"
    assert artifact.provenance.made.endswith("with go 1.23.4")
    given: list[object] = []
    system = made["Made"]()
    system.cluster = SimpleNamespace(remote=lambda node: node)
    system.artifact = SimpleNamespace(install=given.append)
    system.install("n1")
    assert given == ["n1"]


def test_the_generator_of_the_page_does_what_the_page_says() -> None:
    """First 100 operations in about two seconds, then a pause, then two readers among five clients."""
    made: dict[str, Any] = {}
    for code in COMBINED:
        exec(code, made)  # noqa: S102 - the code of our own page
    ops = simulate(limit(600, made["generator"](7, 5)), load=ClosedLoop(concurrency=5), nodes=5)
    asked = [op for op in ops if op.type is OpType.INVOKE]
    times = [op.time_ns / 1e9 for op in asked]
    assert 1 < times[99] < 4
    assert times[100] - times[99] > 5
    assert {op.f for op in asked if op.process in {0, 1} and op.time_ns > asked[99].time_ns} == {"read"}
    assert {op.f for op in asked if op.process == 4 and op.time_ns > asked[99].time_ns} == {"read", "write", "cas"}
    assert len({op.key for op in asked}) > 3
    assert [op[4:7] for op in ops] == [
        op[4:7] for op in simulate(limit(600, made["generator"](7, 5)), load=ClosedLoop(concurrency=5), nodes=5)
    ]


def test_each_word_of_the_page_is_a_combinator() -> None:
    """And each combinator that others can use is in the table."""
    page = (ROOT / "docs" / "guide" / "new-workload.md").read_text()
    table = page[page.index("| word |") :].split("\n\n")[0]
    words = set(re.findall(r"`([A-Za-z_]+)`", "".join(row.split("|")[1] for row in table.splitlines())))
    public = {
        name for name, member in vars(combinators).items() if getattr(member, "__module__", "") == combinators.__name__
    }
    assert words == {name for name in public if not name.startswith("_")} - {"Stream"}


def test_the_page_of_members_is_made_from_the_docstrings() -> None:
    """After a change of a docstring, `python tools/system_reference.py` writes the page again."""
    written = (ROOT / "docs" / "reference" / "system-reference.md").read_text(encoding="utf-8")
    made = subprocess.run(
        [sys.executable, "-c", "import system_reference; print(system_reference.page(), end='')"],
        env={"PYTHONPATH": f"{ROOT / 'tools'}:{ROOT}"}, capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    assert written == made, "run: python tools/system_reference.py"


@pytest.mark.parametrize("of", [System, Service, Daemon, NodeStatus, ReplicaState, Client])
def test_the_page_has_every_member(of: type) -> None:
    """Public methods, class attributes and fields, with a text."""
    (section,) = re.findall(
        rf"^## {of.__name__}\n(.*?)(?=^## |\Z)",
        (ROOT / "docs" / "reference" / "system-reference.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    members = {name for name in (*vars(of), *inspect.get_annotations(of)) if not name.startswith("_")}
    documented = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    documented |= set(re.findall(r"^### `(?:async )?(\w+)\(", section, re.MULTILINE))
    assert members <= documented
    assert not re.search(r"\|\s*\|$", section, re.MULTILINE), "a member without a meaning"


def test_the_commands_of_the_installation_name_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    """Targets of make, files of the clone, and commands of Labrys; `test_outside.py` runs the way of a stranger."""
    makefile = (ROOT / "Makefile").read_text()
    lines = [line for language, text in blocks("guide/install.md") if language == "sh" for line in text.splitlines()]
    assert len(lines) > 15
    for line in lines:
        words = shlex.split(line.removeprefix("sudo "))
        for word in words:
            path = word.removeprefix("CLONE/")
            assert path == word or "*" in path or (ROOT / path).exists(), line
        if words[0] == "make":
            assert re.search(rf"^{words[-1]}:", makefile, re.MULTILINE), line
        if words[0].rpartition("/")[2] == "labrys":
            words = [DEFAULT if word == "my-store" else word for word in words]  # it is not installed here
            assert cli.invoke([*words[1:], "--help"] if words[1:] != ["--version"] else words[1:]) == 0, line
            capsys.readouterr()
