"""Commits of a local git repository, and their builds with a command of the user.

A build runs in a clone of the repository at the commit, so the command has git's history and tags. `harness.builds` keeps what
it makes, by commit and command.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.builds import Build
from harness.console.plain import name as plain_name
from harness.console.plain import one_line
from harness.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST: Final = 10_000
TIMEOUT_S: Final = 120.0
SHOWN_DIGITS: Final = 12
MAX_SUBJECT: Final = 60
_ROW: Final = "--format=%H %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit.

    Attributes:
        id: Its whole hexadecimal name.
        subject: The first line of its message, as one safe line.
    """

    id: str
    subject: str

    @property
    def name(self) -> str:
        """Returns it as people name it: the first digits and the subject."""
        return f"{self.id[:SHOWN_DIGITS]} {self.subject}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBuild(Build):
    """A build of a commit; `sources` is the repository, or a folder in it.

    Attributes:
        commit: The commit.
    """

    commit: Commit

    def _sources_digest(self) -> str:
        return self.commit.id

    def _commit(self) -> str:
        return self.commit.id

    def _fill(self, work: Path) -> None:
        """Clones the repository and checks the commit out."""
        objects = _output(self.sources, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
        _git("clone", "--quiet", "--shared", "--no-checkout", "--", objects, str(work))
        _git("-C", str(work), "checkout", "--quiet", "--detach", self.commit.id)


def commits_between(repository: Path, one: str, other: str) -> tuple[Sequence[Commit], bool]:
    """Returns the commits from the older one of two to the newer one, both included, and whether `one` is the older one.

    Of a merge, only the first parent counts: all that it merges is one change.

    Args:
        repository: The repository, or a folder in it.
        one: A name of a commit.
        other: Another one.

    Raises:
        InputError: It is no repository, a name is of no commit, neither is an ancestor of the other, or too many are between.
    """
    first, last = (_resolved(repository, name) for name in (one, other))
    if first == last:
        raise InputError(f"{plain_name(one)} and {plain_name(other)} are the same commit")
    is_older = _is_ancestor(repository, first, last)
    if not is_older:
        if not _is_ancestor(repository, last, first):
            raise InputError(f"neither of {plain_name(one)} and {plain_name(other)} is an ancestor of the other")
        first, last = last, first
    between = _output(
        repository, "log", "--first-parent", f"--max-count={MOST + 1}", _ROW, f"{first}..{last}"
    ).splitlines()
    if len(between) > MOST:
        raise InputError(f"more than {MOST:,} commits are between {plain_name(one)} and {plain_name(other)}")
    rows = [_output(repository, "log", "--max-count=1", _ROW, first).strip(), *reversed(between)]
    return [_commit(row) for row in rows], is_older


def _commit(row: str) -> Commit:
    name, _, subject = row.partition(" ")
    return Commit(id=name, subject=one_line(subject)[:MAX_SUBJECT])


def _resolved(repository: Path, name: str) -> str:
    """Returns the whole name of a commit."""
    done = _run("-C", str(repository), "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode != 0:
        raise InputError(f"{repository} has no commit {plain_name(name)}: git says {one_line(done.stderr)}")
    return done.stdout.strip()


def _is_ancestor(repository: Path, older: str, newer: str) -> bool:
    return _run("-C", str(repository), "merge-base", "--is-ancestor", older, newer).returncode == 0


def _output(repository: Path, *words: str) -> str:
    return _git("-C", str(repository), *words)


def _git(*words: str) -> str:
    """Runs git, and returns what it prints.

    Raises:
        InfrastructureError: It fails.
    """
    done = _run(*words)
    if done.returncode != 0:
        raise InfrastructureError(f"`git {' '.join(words)}` failed: {one_line(done.stderr)}")
    return done.stdout


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs git.

    Raises:
        InfrastructureError: It is not there, or did not end in time.
    """
    try:
        return subprocess.run(
            ["git", *words], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except OSError as error:
        raise InfrastructureError(
            f"git cannot be started: {error.strerror}; `apt-get install git` installs it"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"`git {' '.join(words)}` did not end within {TIMEOUT_S:g} s") from error
