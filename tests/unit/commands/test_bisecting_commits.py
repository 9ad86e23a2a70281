"""A bisection over commits builds each one once with the user's command, and skips those that do not build."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands.bisect.commits import CommitOptions, axis_of_commits
from commands.bisect.deciding import Decider, NoTimeError, Runs
from commands.bisect.search import Found, search
from commands.bisect.state import Search, State
from commands.run.in_time import Deadline
from harness import children
from harness.builds import BuildFailedError
from harness.commits import commits_between
from harness.errors import InputError
from harness.option_values import build
from harness.outcome import RunOutcome
from harness.verdict import Part, Verdict
from tests.trials import settled_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commands.bisect.values import Axis, Point

SYSTEM = "examples/own_binary/system.py:OwnBinary"
BUILD = "sh -c 'test -f broken && exit 3; sed s/^/built-/ source > out'"


def git(repository: Path, *words: str) -> str:
    """Runs git in the repository of a test."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@host.example")
    return subprocess.run(
        ["git", "-C", str(repository), *identity, *words], capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(repository: Path, subject: str, **files: str | None) -> str:
    """Makes a commit, whose files have these texts; None removes one. Returns its name."""
    for name, text in files.items():
        (repository / name).unlink() if text is None else (repository / name).write_text(text)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", subject)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Six commits, tagged c0 to c5; c2 does not build, and the source is good up to c3."""
    made = tmp_path / "My Server"
    made.mkdir()
    git(made, "init", "--quiet", "--initial-branch", "main")
    for number in range(6):
        commit(
            made,
            f"change {number}\x1b[31m",
            source=f"{'good' if number < 4 else 'bad'} {number}\n",
            **({"broken": "x"} if number == 2 else {"broken": None} if number == 3 else {}),
        )
        git(made, "tag", f"c{number}")
    return made


@pytest.fixture
def axis(repository: Path) -> Iterator[Callable[..., Axis]]:
    """Returns the commits of the repository as what is searched."""
    with settled_by("--cluster", "sim", "--nodes", "1", "--system", SYSTEM, "--seed", "1") as settled:

        def made(
            good: str | None = "c0", bad: str | None = "c5", *values: str, over: str = "program", **more: Any
        ) -> Axis:
            options = build(CommitOptions, {"repository": repository, "build": BUILD, "product": "out", **more})
            return axis_of_commits(settled, options, over, values, good=good, bad=bad, say=lambda _: None)

        yield made


def text_of(axis: Axis, point: Point) -> str:
    """Builds a commit, and returns the text of what the build made."""
    return Path(axis.changes_of(point)["program"]).read_text(encoding="utf-8")


def test_commits_are_in_their_order_and_built_once(axis: Callable[..., Axis], repository: Path) -> None:
    """From the good end to the bad one, also if the good one is newer. The working folder stays as it is."""
    forwards = axis()
    assert [point.name[13:] for point in forwards.points] == [f"change {number}\\x1b[31m" for number in range(6)]
    assert (forwards.backwards, forwards.noun, forwards.flag) == (False, "commit", "--program")
    assert axis("c4", "c0").backwards
    assert [point.name for point in axis("c4", "c1").points] == [point.name for point in forwards.points[4:0:-1]]
    assert [point.name for point in axis("c3", None).points] == [point.name for point in forwards.points[3:]]
    git(repository, "checkout", "--quiet", "--detach")
    lonely = commit(repository, "in no branch", source="good 6\n")
    git(repository, "checkout", "--quiet", "main")
    (repository / "source").write_text("not committed\n")
    (repository / "folder").mkdir()
    in_a_folder = axis("c5", lonely, repository=repository / "folder")
    assert text_of(in_a_folder, in_a_folder.points[1]) == "built-good 6\n"
    assert text_of(forwards, forwards.points[1]) == "built-good 1\n"
    before = forwards.changes_of(forwards.points[1])["program"].stat().st_mtime_ns
    again = axis()
    assert again.changes_of(again.points[1])["program"].stat().st_mtime_ns == before
    other = axis(build=BUILD.replace("built", "made"))
    assert text_of(other, other.points[1]) == "made-good 1\n"
    assert (repository / "source").read_text() == "not committed\n"
    assert git(repository, "rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_a_build_sees_git_and_can_make_a_folder(axis: Callable[..., Axis]) -> None:
    """The clone has the tags. The path of a folder goes into the value of the option."""
    command = "sh -c 'mkdir -p made/bin && git describe --tags > made/bin/server'"
    commits = axis("c0", "c5", "{}/bin/server", build=command, product="made")
    assert text_of(commits, commits.points[3]) == "c3\n"


def test_a_merge_is_one_change(repository: Path) -> None:
    """A search does not go into the commits of a branch that was merged."""
    git(repository, "checkout", "--quiet", "-b", "side", "c4")
    commit(repository, "on the side", other="1")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-ff", "--message", "the merge", "side")
    commits, forwards = commits_between(repository, "c4", "main")
    assert [entry.subject.split("\\")[0] for entry in commits] == ["change 4", "change 5", "the merge"]
    assert forwards
    with pytest.raises(InputError, match="neither of c5 and side is an ancestor"):
        commits_between(repository, "c5", "side")


@pytest.mark.parametrize(
    ("command", "more", "error"),
    [
        ("sh -c 'echo no such header; exit 3'", {}, r"ended with status 3; .*\.log has its output"),
        ("sleep 60", {"build_timeout": 0.3}, r"did not end within 0\.3 s"),
        ("true", {}, "made no out"),
        ("./not-there.sh --all", {}, "`./not-there.sh --all` cannot be started: No such file"),
        ("ln -s /bin/sh out", {}, "made no out"),
    ],
)
def test_a_commit_that_does_not_build(
    command: str, more: dict[str, float], error: str, axis: Callable[..., Axis]
) -> None:
    """The command fails, takes too long, makes nothing, or makes what is not in the clone."""
    commits = axis(build=command, **more)
    with pytest.raises(BuildFailedError, match=error):
        commits.changes_of(commits.points[0])


@pytest.mark.parametrize(
    ("arguments", "more", "error"),
    [
        ((None,), {}, "--commits needs --good"),
        ((), {"build": ""}, "--commits needs"),
        ((), {"over": "mends"}, "--over OPTION of the system"),
        ((), {"over": "progran"}, "Did you mean"),
        ((), {"product": "/etc/passwd"}, "expected a path in the clone"),
        ((), {"product": "../out"}, "expected a path in the clone"),
        ((), {"build": "sh -c 'x"}, "not a command of a shell"),
        (("c0", "c5", "java -jar x"), {}, r"one value with \{\}"),
        (("c0", "c5", "{}", "{} -v"), {}, r"one value with \{\}"),
        (("c9",), {}, "has no commit c9"),
        (("--help",), {}, "has no commit --help"),
        (("c5",), {}, "are the same commit"),
        ((), {"repository": Path("/")}, "has no commit c0: git says"),
        ((), {"repository": None}, "need --commits"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: tuple[str | None, ...], more: dict[str, object], error: str, axis: Callable[..., Axis]
) -> None:
    """Before any build."""
    with pytest.raises(InputError, match=error):
        axis(*arguments, **more)


def runs_of(axis: Axis, state: State, *, seconds: float = 600) -> Runs:
    """Returns runs in which a built text with `bad` is bad."""

    def carry_out(point: Point, seed: int) -> RunOutcome:
        verdict = Verdict.INVALID if "bad" in text_of(axis, point) else Verdict.VALID
        return RunOutcome.of([Part(name="linearizable", verdict=verdict, reason="because")], error=None)

    deadline = Deadline(time.monotonic() + seconds)
    return Runs(carry_out=carry_out, parts=("linearizable",), state=state, deadline=deadline, say=lambda _: None)


def decider_of(runs: Runs) -> Decider:
    """Returns the decisions by the seed."""
    return Decider(runs, seed=1, simulated=True, seed_alone=True, error=0.01, rates=None)


def searched(axis: Axis) -> Search:
    """Returns what the tests search."""
    return Search(
        run="labrys test", over=axis.flag, points=[point.name for point in axis.points], parts=["linearizable"],
        error=0.05, rates=None, seed_alone=True, build=list(axis.build),
    )  # fmt: skip


def test_the_first_bad_commit_is_found_and_a_resumed_search_builds_nothing(
    axis: Callable[..., Axis], tmp_path: Path
) -> None:
    """The commit that does not build is tried once, is skipped with its reason, and stays so in the state."""
    commits = axis()
    state = State.create(tmp_path, "whole", searched(commits), datetime(2026, 12, 1, tzinfo=UTC))
    decider = decider_of(runs_of(commits, state))
    assert search(6, lambda place: decider.is_bad(commits.points[place])) == Found(good=3, bad=4)
    (skipped,) = [entry for entry in decider.decisions if entry.bad is None]
    assert skipped.point == commits.points[2]
    assert "`sh -c " in skipped.how
    assert "ended with status 3" in skipped.how
    assert [run.built for run in state.runs].count(False) == 1
    again = State.read(state.path, searched(commits))
    resumed = axis(build="false")
    decider = decider_of(runs_of(resumed, again))
    assert search(6, lambda place: decider.is_bad(resumed.points[place])) == Found(good=3, bad=4)
    with pytest.raises(InputError, match="its build differs"):
        State.read(state.path, searched(resumed))


@pytest.mark.parametrize("by_person", [True, False])
def test_a_build_ends_with_the_search(by_person: bool, axis: Callable[..., Axis], tmp_path: Path) -> None:
    """Ctrl-C and the end of the time end the command of the build, and what it started. There is no run then."""
    pids = tmp_path / "pids"
    commits = axis(build=f"sh -c 'sleep 60 & echo $! > {pids}; wait'")
    state = State.create(tmp_path, "cut", searched(commits), datetime(2026, 12, 1, tzinfo=UTC))
    runs = runs_of(commits, state, seconds=60 if by_person else 1.0)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    if by_person:
        timer.start()
    with pytest.raises(NoTimeError):
        decider_of(runs).is_bad(commits.points[0])
    timer.cancel()
    assert runs.deadline.interrupted == by_person
    assert not state.runs
    sleeping, until_s = int(pids.read_text()), time.monotonic() + 10
    while children.found(sleeping) is not None:  # SIGKILL takes a moment
        assert time.monotonic() < until_s
        time.sleep(0.01)
