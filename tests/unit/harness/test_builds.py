"""Builds: once, into the cache, whole or not at all, and with a provenance."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness import builds
from harness.builds import FILES_ARE_OF_S, Build, Provenance, put_on_shelf
from harness.console.members import read
from harness.errors import InfrastructureError, InputError
from harness.remote import Result
from harness.remote.folders import digest
from harness.traits import Program
from tests.stand_ins import stand_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.op import Value
    from harness.remote import Remote

ROOT = Path(__file__).parents[3]
# A process of its own that builds like `build` below.
PROCESS = """
import signal, sys
from pathlib import Path
from harness.builds import Build
signal.signal(signal.SIGINT, signal.default_int_handler)
sources, command = Path(sys.argv[1]), sys.argv[2]
made = Build(name="thing", version="1.0", sources=sources, command=("sh", "-c", command), product="out")
artifact = made.artifact(print)
print((artifact.path / "program").read_text(), artifact.provenance.digest)
"""
COUNTED = "echo x >> {calls}; mkdir out && cat source > out/program && chmod +x out/program"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """The file with a line for each run of the command."""
    made = tmp_path / "calls"
    made.touch()
    return made


@pytest.fixture
def build(tmp_path: Path, calls: Path) -> Callable[..., Build]:
    """Returns a build that copies its source, with other arguments as given."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "source").write_text("content\n")

    def made(**other: Any) -> Build:
        command = ("sh", "-c", COUNTED.format(calls=calls))
        return Build(
            **{"name": "thing", "version": "1.0", "sources": sources, "command": command, "product": "out", **other}
        )

    return made


def tool(folder: Path, version: str = "3.1.4") -> Program:
    """A program `forge` in a folder that is on the PATH."""
    stand_in(folder, "forge", f"echo forge {version}")
    return Program(
        name="forge", package="forge-dev", purpose="building things", version_pattern=r"forge (\d+)", least_version=3
    )


def is_gone(pid: int) -> bool:
    """Whether a process ends within a limited time."""
    stat = Path(f"/proc/{pid}/stat")
    deadline_s = time.monotonic() + 10
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def entries(tmp_path: Path) -> list[str]:
    """The names in the folder of builds, without locks and logs."""
    return sorted(path.name for path in (tmp_path / "cache" / "labrys" / "builds").iterdir() if path.is_dir())


def test_a_second_build_comes_from_the_cache(build: Callable[..., Build], calls: Path, tmp_path: Path) -> None:
    """The command runs once; both artifacts have the same digest, content and provenance."""
    said: list[str] = []
    first, second = (build().artifact(said.append) for _ in range(2))
    assert first == second
    assert calls.read_text() == "x\n"
    assert (first.path / "program").read_text() == "content\n"
    assert os.access(first.path / "program", os.X_OK)
    assert first.provenance.digest == digest(first.path)
    assert first.provenance.version == "1.0"
    assert first.there == f"/opt/labrys/thing-{first.provenance.digest[:12]}"
    assert said[0] == "building thing 1.0; later runs take it from the cache"
    assert said[-1] == f"thing 1.0 ({first.provenance.short}) comes from the cache"
    assert len(entries(tmp_path)) == 1
    assert {path.stat().st_mtime for path in (first.path, *first.path.rglob("*"))} == {FILES_ARE_OF_S}


def test_a_product_can_be_one_file(build: Callable[..., Build]) -> None:
    """The artifact is a folder in any case."""
    assert [path.name for path in build(product="out/program").artifact(print).path.iterdir()] == ["program"]


def test_a_change_of_what_determines_it_builds_again(build: Callable[..., Build], calls: Path, tmp_path: Path) -> None:
    """A source, the version, the command and the patches; a file that is no source changes nothing."""
    build(files=("source",)).artifact(print)
    (tmp_path / "sources" / "notes").write_text("not a source")
    build(files=("source",)).artifact(print)
    assert len(calls.read_text()) == 2
    before = build().artifact(print)
    (tmp_path / "sources" / "source").write_text("other\n")
    others = [
        build().artifact(print),
        build(version="1.1").artifact(print),
        build(patches=("no-sync",)).artifact(print),
        build(command=("sh", "-c", "mkdir out; cp source out/program")).artifact(print),
    ]
    assert (before.path / "program").read_text() == "content\n", "the old artifact stays"
    assert len({artifact.path for artifact in (before, *others)}) == 5
    assert others[2].provenance.mended == "This is thing 1.0 with changes, not the released one: no-sync."
    assert before.provenance.mended == ""


def test_parts_are_beside_the_sources(build: Callable[..., Build], calls: Path, tmp_path: Path) -> None:
    """The command finds a file of another artifact at its path, and a change of it builds again."""
    other = tmp_path / "other.jar"
    command = ("sh", "-c", f"{COUNTED.format(calls=calls)}; cp lib/it.jar out/it.jar")
    for content in ("one", "one", "two"):
        other.write_text(content)
        made = build(command=command, parts={"lib/it.jar": other}).artifact(print)
        assert (made.path / "it.jar").read_text() == content
        assert (made.path / "program").read_text() == "content\n"
    assert calls.read_text() == "x\nx\n"


def test_a_damaged_artifact_is_built_again(build: Callable[..., Build], calls: Path, tmp_path: Path) -> None:
    """A changed, a missing and an additional file, and a record that cannot be read: each is noticed by the next process."""
    program = build().artifact(print).path / "program"

    def unreadable() -> None:
        (program.parents[1] / "artifact.json").write_text("{")

    damages: list[Callable[[], object]] = [
        lambda: program.write_text("changed\n"),
        program.unlink,
        (program.parent / "more").touch,
        lambda: program.chmod(0o644),
        unreadable,
    ]
    for count, damage in enumerate(damages, 2):
        damage()
        digest.cache_clear()  # as another process
        said: list[str] = []
        assert build().artifact(said.append).path == program.parent
        assert "is damaged, so thing is built again" in said[0]
        assert program.read_text() == "content\n"
        assert len(calls.read_text().split()) == count


def test_two_processes_build_once(build: Callable[..., Build], calls: Path, tmp_path: Path) -> None:
    """The second one waits for the first, says so, and has the same artifact."""
    slow = COUNTED.format(calls=calls).replace("mkdir", "sleep 1; mkdir", 1)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path / "sources"), slow],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    told = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert calls.read_text() == "x\n"
    assert len({output.splitlines()[-1] for output in told}) == 1
    assert sum("waiting for another process that builds thing" in output for output in told) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_artifact(
    build: Callable[..., Build], calls: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """The next process builds from the beginning. Ctrl-C ends the command too, and leaves no folder."""
    pid = tmp_path / "pid"
    command = f"mkdir out; echo half > out/program; echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 60"
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(tmp_path / "sources"), command], cwd=ROOT, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline_s = time.monotonic() + 30
    while not pid.exists():
        assert time.monotonic() < deadline_s, "the command did not begin"
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(timeout=30) != 0
    shell = int(pid.read_text())
    if number is signal.SIGINT:
        assert entries(tmp_path) == []
        assert is_gone(shell)
    else:
        os.kill(shell, signal.SIGKILL)
    again = build(command=("sh", "-c", command.replace("sleep 60", "true").replace("half", "whole")))
    assert (again.artifact(print).path / "program").read_text() == "whole\n"
    same = subprocess.run(
        [sys.executable, "-c", PROCESS, str(tmp_path / "sources"), command.replace("sleep 60", "sleep 0")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "building thing" in same.stdout


def test_leftovers_of_a_killed_build_are_removed(build: Callable[..., Build], tmp_path: Path) -> None:
    """A folder of a process that was killed is never an artifact, and goes with the next build of the same entry."""
    entry = build().artifact(print).path.parent
    left = entry.with_name(f"{entry.name}.part-abc")
    entry.rename(left)
    digest.cache_clear()
    assert build().artifact(print).path.parent == entry
    assert entries(tmp_path) == [entry.name]


def test_a_command_that_fails(build: Callable[..., Build], tmp_path: Path) -> None:
    """The error has the command, the status, the end of the output, and the file with all of it; nothing stays in the cache."""
    with pytest.raises(InfrastructureError, match=r"thing cannot be built: `sh -c .*` ended with status 3") as raised:
        build(command=("sh", "-c", "seq 100; echo the cause >&2; exit 3")).artifact(print)
    assert str(raised.value).endswith("\n100\nthe cause")
    log = Path(str(raised.value).partition("status 3; ")[2].partition(" has its output")[0])
    assert log.read_text().startswith("1\n2\n")
    assert entries(tmp_path) == []


def test_a_command_that_does_not_end(
    build: Callable[..., Build], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is told what it prints; at its deadline it ends with all its processes."""
    monkeypatch.setattr(builds, "TELL_EVERY_S", 0.05)
    said: list[str] = []
    pid = tmp_path / "pid"
    with pytest.raises(InfrastructureError, match=r"did not end within 0\.5 s"):
        build(command=("sh", "-c", f"echo step 1; sleep 60 & echo $! >{pid}; wait"), timeout_s=0.5).artifact(
            said.append
        )
    assert any(line.endswith("s: step 1") for line in said)
    assert is_gone(int(pid.read_text()))


def test_a_command_without_its_product(build: Callable[..., Build]) -> None:
    """A command that succeeds and makes nothing is an error."""
    with pytest.raises(InfrastructureError, match="ended without an error, but made no out for thing"):
        build(command=("true",)).artifact(print)


def test_a_missing_tool(build: Callable[..., Build], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names each tool that is missing or too old, and how to install it; an artifact in the cache needs no tool."""
    program = tool(tmp_path / "bin")
    other = Program(name="no-such-tool", package="p", purpose="also building", version_arguments=("version",))
    with pytest.raises(InfrastructureError) as raised:
        build(tools=(program, other)).artifact(print)
    assert str(raised.value) == (
        "thing 1.0 is neither in the cache nor in this installation, and cannot be built here: forge is not on PATH (for "
        "building things; `apt-get install forge-dev` installs it); no-such-tool is not on PATH (for also building; "
        "`apt-get install p` installs it)"
    )
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{path}")
    made = build(tools=(program,)).artifact(print)
    assert made.provenance.made.endswith(" with forge 3.1.4")
    monkeypatch.setenv("PATH", path)
    assert build(tools=(program,)).artifact(print) == made
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{path}")
    tool(tmp_path / "bin", "2.9")
    with pytest.raises(InfrastructureError, match=r"forge is not 3 or later: forge 2\.9"):
        build(tools=(program,)).artifact(print)


def test_another_tool_builds_again(
    build: Callable[..., Build], calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program file of a tool, and the variables that it reads, are part of the name of an entry."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for version in ("3.1.4", "3.15.9", "3.15.9"):
        program = tool(tmp_path / "bin", version)
        os.utime(tmp_path / "bin" / "forge", (0, int(version.split(".")[1])))
        assert build(tools=(program,)).artifact(print).provenance.made.endswith(version)
    assert len(calls.read_text().split()) == 2
    monkeypatch.setenv("FORGE_HOME", "/elsewhere")
    build(tools=(program,), variables=("FORGE_HOME",)).artifact(print)
    assert len(calls.read_text().split()) == 3


def test_a_package_carries_an_artifact(
    build: Callable[..., Build], calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without tools and with an empty cache takes it from the shelf, if it has the same sources."""
    shelf = tmp_path / "package" / "shelf"
    program = tool(tmp_path / "bin")
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{path}")
    made = build(tools=(program,)).artifact(print)
    put_on_shelf(made, shelf)
    put_on_shelf(made, shelf)
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    said: list[str] = []
    carried = build(tools=(program,), shelf=shelf).artifact(said.append)
    assert carried.provenance == made.provenance
    assert carried.path.is_relative_to(shelf)
    assert said == [f"thing 1.0 ({made.provenance.short}) comes from the package"]
    assert len(calls.read_text().split()) == 1
    (tmp_path / "sources" / "source").write_text("changed\n")
    with pytest.raises(InfrastructureError, match="forge is not on PATH"):
        build(tools=(program,), shelf=shelf).artifact(print)


def test_a_package_without_sources(build: Callable[..., Build], tmp_path: Path) -> None:
    """The error says that the installation lacks them."""
    with pytest.raises(InfrastructureError, match="so this installation lacks its sources"):
        build(sources=tmp_path / "nowhere").artifact(print)


def test_a_cache_that_cannot_be_written(
    build: Callable[..., Build], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to set."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InfrastructureError, match="set XDG_CACHE_HOME to a folder that this user can write"):
        build().artifact(print)


def test_the_commit_of_the_sources(build: Callable[..., Build], tmp_path: Path) -> None:
    """It is recorded with a word about changes; a folder that git does not know has none, also inside of a repository."""

    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *identity, *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "--quiet")
    assert build(version="0").artifact(print).provenance.commit is None
    git("add", "sources")
    git("commit", "--quiet", "--message", "x")
    commit = git("rev-parse", "HEAD")
    assert build(version="1").artifact(print).provenance.commit == commit
    (tmp_path / "sources" / "source").write_text("changed\n")
    assert build(version="2").artifact(print).provenance.commit == f"{commit} with changes"


def test_a_provenance_is_read_as_it_is_written() -> None:
    """Another document is an error that names the wrong members."""
    written = Provenance(name="a", version="1", digest="d" * 64, patches=["x"], commit=None, made="m")
    document = json.loads(json.dumps(asdict(written)))
    assert read(document, Provenance, "artifact") == written
    wrongs: dict[str, Value] = {
        "artifact: expected an object, found None": None,
        "artifact: expected an object, found []": [],
        "the member artifact.name is missing": {},
        "artifact.patches: expected a list, found 'x'": {**document, "patches": "x"},
        "artifact.commit: expected a text or null, found 1": {**document, "commit": 1},
    }
    for sentence, wrong in wrongs.items():
        with pytest.raises(InputError) as caught:
            read(wrong, Provenance, "artifact")
        assert str(caught.value) == sentence


def test_two_variants_on_one_node(build: Callable[..., Build], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand beside each other, since the path of each has its digest."""
    monkeypatch.setattr(builds, "PLACE", str(tmp_path / "node"))

    def run(command: str, **_: Any) -> Result:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        return Result(node="n1", command=command, status=done.returncode, stdout=done.stdout, stderr=done.stderr)

    first = build().artifact(print)
    (tmp_path / "sources" / "source").write_text("other\n")
    second = build().artifact(print)
    node = cast("Remote", SimpleNamespace(node="n1", run=run))
    for artifact in (first, second, first):
        artifact.install(node)
    assert (Path(first.there) / "program").read_text() == "content\n"
    assert (Path(second.there) / "program").read_text() == "other\n"
