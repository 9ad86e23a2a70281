"""The store of runs: one folder for each run, which is never overwritten.

    store/<test-name>/<UTC timestamp>/     test.json plan.json history.jsonl results.json report.html ...
    store/latest, store/<test-name>/latest the newest run, of all and of one test
    store/current                          the running test, if there is one

Two rules. The folder of a run is made in one step, which fails if it exists. So two runs never share a folder, and a later run
never overwrites an earlier one. Files and links that others may read are replaced by a rename, so a reader sees the old or the
new content, never a part. Other content of the store (files, broken links, foreign folders) is ignored.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.console import below
from harness.console.plain import counted
from harness.errors import InputError
from harness.suites.expectation import Shown
from harness.verdict import Verdict
from results.store.errors import NoSuchRun, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from harness.op import Value

LATEST = "latest"
CURRENT = "current"
SUITES = "suites"
MAX_SUFFIX = 1000
HEAD_BYTES = 65_536
MAX_PLAN_BYTES = 1 << 20  # of a plan whose kinds a list shows
MAX_KINDS = 50
MAX_THRESHOLDS = 50  # of a run, in a list
MAX_SENTENCE = 2000
_TEST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_STAMP = re.compile(r"\d{8}T\d{6}\.\d{3}Z(-\d{1,4})?")


@dataclass(frozen=True, slots=True)
class Run:
    """The folder of one run, and the paths of its files, which need not exist yet.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def test_name(self) -> str:
        """Returns the name of the test that was run."""
        return self.path.parent.name

    @property
    def stamp(self) -> str:
        """Returns the folder's own name: the start of the run, in UTC."""
        return self.path.name

    @property
    def test_json(self) -> Path:
        """Returns the path of the test: name, options, seed, versions. It is written before the run."""
        return self.path / "test.json"

    @property
    def plan_json(self) -> Path:
        """Returns the path of the planned faults."""
        return self.path / "plan.json"

    @property
    def shrunk_json(self) -> Path:
        """Returns the path of the plan that `labrys shrink` found: the smallest version of an invalid run."""
        return self.path / "shrunk.json"

    @property
    def history_jsonl(self) -> Path:
        """Returns the path of the history, which grows during the run."""
        return self.path / "history.jsonl"

    @property
    def history_edn(self) -> Path:
        """Returns the path of the history as Jepsen writes it."""
        return self.path / "history.edn"

    @property
    def operations_parquet(self) -> Path:
        """Returns the path of the operations as a table."""
        return self.path / "operations.parquet"

    @property
    def results_json(self) -> Path:
        """Returns the path of the verdict."""
        return self.path / "results.json"

    @property
    def results_edn(self) -> Path:
        """Returns the path of the verdict as Jepsen writes it."""
        return self.path / "results.edn"

    @property
    def packets_pcap(self) -> Path:
        """Returns the path of the last packets that a switch carried; only an invalid run keeps it."""
        return self.path / "packets.pcap"

    @property
    def calls_log(self) -> Path:
        """Returns the path of the log of calls of programs in virtual time; see `labrys test --calls`."""
        return self.path / "calls.log"

    @property
    def report_html(self) -> Path:
        """Returns the path of the report."""
        return self.path / "report.html"

    @property
    def for_authors_md(self) -> Path:
        """Returns the path of the report for the authors of the system."""
        return self.path / "for-authors.md"

    @property
    def junit_xml(self) -> Path:
        """Returns the path of the verdict as a CI server reads it."""
        return self.path / "junit.xml"

    @property
    def live_json(self) -> Path:
        """Returns the path of the live state of a run that is not in its history: phase, leader, term."""
        return self.path / "live.json"

    @property
    def log(self) -> Path:
        """Returns the path of Labrys' own log."""
        return self.path / "labrys.log"

    @property
    def plots_dir(self) -> Path:
        """Returns the folder of the plots."""
        return self.path / "plots"

    @property
    def nodes_dir(self) -> Path:
        """Returns the folder with a folder of logs for each node."""
        return self.path / "nodes"

    def hold(self) -> contextlib.AbstractContextManager[None]:
        """Marks the run as running until the context or the process ends, in any way."""
        return _held(self.log)

    def is_running(self) -> bool:
        """Returns whether a process has marked the run as running."""
        try:
            with below.open_file(self.path, self.log) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def write_json(self, path: Path, value: Value) -> None:
        """Writes `value` to `path` in one step, with an indent of two spaces."""
        self.write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def write_text(self, path: Path, text: str) -> None:
        """Replaces a file in the run's folder in one step; see `write_text` of this module."""
        write_text(self.path, path, text)

    def has(self, path: Path) -> bool:
        """Returns whether there is a file at `path`, in the run's folder.

        Raises:
            InputError: There is something else, such as a link.
        """
        try:
            return below.is_file(self.path, path)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error

    def read_bytes(self, path: Path, most: int) -> bytes:
        """Reads the file at `path`, in the run's folder.

        Raises:
            InputError: It cannot be read, is reached over a link, or has more than `most` bytes.
        """
        try:
            with below.open_file(self.path, path) as file:
                data = file.read(most + 1)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        if len(data) > most:
            raise InputError(f"{path} exceeds the maximum size of {most} bytes")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The row of a run in a list.

    Attributes:
        run: The run.
        valid: True, False or `"unknown"`; None while there is no verdict.
        reason: The verdict's sentence, or why there is no verdict.
        seed: The seed as text, since a float cannot hold every seed; None if it is unknown.
        reproduce: The command that runs the same test again; None if it is unknown.
        running: Whether this is the running test.
        faults: The kinds of faults in its plan.
        expected: The verdict that its suite expects, if that is not `valid`.
        crossed: A sentence for each threshold that it crossed.
        behind: Whether it crossed a threshold while the control node was behind.
    """

    run: Run
    valid: bool | str | None
    reason: str
    seed: str | None
    reproduce: str | None
    running: bool
    faults: Sequence[str] = ()
    expected: str | None = None
    crossed: Sequence[str] = ()
    behind: bool = False

    @property
    def shown(self) -> Shown | None:
        """Returns its verdict with its thresholds; None without a verdict."""
        verdict = Verdict.from_json(self.valid)
        return None if verdict is None else Shown(verdict=verdict, crossed=self.crossed, behind=self.behind)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_test_name(text: str) -> bool:
    """Returns whether a text can be the name of a test, and so of a folder."""
    return _TEST_NAME.fullmatch(text) is not None and text not in {LATEST, CURRENT}


def stamp(utc: datetime) -> str:
    """Returns the name of a run's folder for its start, e.g. `20260729T101112.123Z`."""
    return f"{utc:%Y%m%dT%H%M%S}.{utc.microsecond // 1000:03d}Z"


def fresh_folder(parent: Path, utc: datetime) -> Path:
    """Makes a new folder with an instant as its name; further folders of the same instant get a number.

    Raises:
        OSError: It cannot be made.
        StoreError: There are too many folders of this instant.
    """
    base = stamp(utc)
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, MAX_SUFFIX):
        path = parent / (base if number == 1 else f"{base}-{number}")
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            return path
    raise StoreError(f"{parent} has {MAX_SUFFIX - 1} folders of the instant {base} already; move them away")


def write_text(root: Path, path: Path, text: str) -> None:
    """Replaces the file at `path` in one step: a synced temporary file beside it is renamed. Follows no link below `root`.

    Raises:
        StoreError: It cannot be written, e.g. because the disk is full. The old file is still there.
    """
    try:
        below.replace_file(root, path, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise StoreError(
            f"{path} could not be written: {error.strerror or error}; what was there before is kept"
        ) from error


class Store:
    """All runs below one folder.

    Attributes:
        root: The folder; the first run makes it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def create_run(self, test_name: str, utc: datetime) -> Run:
        """Makes the folder of a new run and points `current` and both `latest` at it.

        Args:
            test_name: Letters, digits and `._+-`.
            utc: The start of the run. If there is a run of the same instant, the new one gets a suffix (`-2`, ...).

        Raises:
            StoreError: The name cannot be that of a folder, or the folder cannot be made.
        """
        if not is_test_name(test_name):
            raise StoreError(
                f"expected a test name of letters, digits and `._+-`, other than `{LATEST}` and `{CURRENT}`; "
                f"found {test_name!r}"
            )
        parent = self.root / test_name
        try:
            if parent.is_symlink():
                raise StoreError(f"{parent} is {below.LINK}; give the test another name with --name")
            run = Run(fresh_folder(parent, utc))
            for link in (self.root / CURRENT, self.root / LATEST, parent / LATEST):
                point(link, run.path)
        except OSError as error:
            raise StoreError(
                f"the run's folder {parent / stamp(utc)} could not be made: {error.strerror or error}; "
                "choose another store with --store"
            ) from error
        return run

    def finish(self, run: Run) -> None:
        """Removes `current`, if it still points at `run`."""
        unpoint(self.root / CURRENT, run.path)

    def current(self) -> Run | None:
        """Returns the running test, if there is one."""
        return self._linked(self.root / CURRENT)

    def current_suite(self) -> Path | None:
        """Returns the folder of the running suite, if there is one."""
        run = self._linked(self.root / SUITES / CURRENT)
        return None if run is None else run.path

    def open_run(self, name: str) -> Run:
        """Finds a run by the user's name for it.

        Args:
            name: The path of a run's folder; or, within the store, `latest`, `current`, `<test>/latest`, `<test>/<stamp>`,
                `<test>` (its newest); or an index into the list of runs, newest first: `0` is the newest, `-1` the oldest.

        Raises:
            NoSuchRun: There is no such run.
        """
        if re.fullmatch(r"-?\d{1,9}", name):
            return self._indexed(int(name))
        for base in (self.root, Path()):
            path = base / name
            with contextlib.suppress(OSError, ValueError):
                own = path if path.name in {LATEST, CURRENT} else path / LATEST
                run = self._linked(own)
                if run is not None and _is_run(run.path):
                    return run
                if _is_run(path) and not (own == path and path.is_symlink()):
                    return Run(path.resolve())
        known = [f"{run.test_name}/{run.stamp}" for run in self.runs()[:3]]
        hint = f"the newest runs are {', '.join(known)}" if known else f"the store {self.root} holds no runs yet"
        raise NoSuchRun(f"{name!r} is neither the folder of a run nor a run in the store; {hint}")

    def _indexed(self, index: int) -> Run:
        runs = self.runs()
        try:
            return runs[index]
        except IndexError:
            raise NoSuchRun(
                f"there is no run {index}: the store {self.root} holds {counted(len(runs), 'run')}"
            ) from None

    def runs(self) -> list[Run]:
        """Returns all runs, newest first. Reads folder names only."""
        runs = [Run(path) for test in _folders(self.root) for path in _folders(test) if _STAMP.fullmatch(path.name)]
        return sorted(runs, key=lambda run: (_age_key(run.stamp), run.test_name), reverse=True)

    def suites(self) -> list[Path]:
        """Returns the folders of all suites, newest first. Reads folder names only."""
        paths = [
            path for suite in _folders(self.root / SUITES) for path in _folders(suite) if _STAMP.fullmatch(path.name)
        ]
        return sorted(paths, key=lambda path: (_age_key(path.name), path.parent.name), reverse=True)

    def summaries(self) -> Iterator[RunSummary]:
        """Yields the summaries of all runs, newest first. Reads the heads of a run's files only when its row is needed."""
        current = self.current()
        for run in self.runs():
            yield summarize(run, running=current is not None and run.path.resolve() == current.path)

    def _linked(self, link: Path) -> Run | None:
        """Returns the run at the target of one of the store's own links; only targets below the link's folder count."""
        try:
            path = link.resolve(strict=True) if link.is_symlink() else None
            return Run(path) if path is not None and path.is_relative_to(link.parent.resolve()) else None
        except (OSError, RuntimeError):  # a broken link, or a circle of links
            return None


def summarize(run: Run, *, running: bool = False) -> RunSummary:
    """Returns the summary of a run from the heads of its files, of any size."""
    results = read_head(run.results_json, ("valid", "reason", "thresholds", "seed", "reproduce"))
    valid = results.get("valid")
    test = read_head(run.test_json, ("seed", "reproduce", "suite"))
    if Verdict.from_json(valid) is None:
        reason = "running" if running else "no verdict: the run ended before, or its results.json is damaged"
        return RunSummary(
            run=run, valid=None, reason=reason, seed=_text(test.get("seed")), reproduce=_text(test.get("reproduce")),
            running=running, faults=planned_kinds(run), expected=_expected(test.get("suite")),
        )  # fmt: skip
    crossed, behind = _crossed(results.get("thresholds"))
    return RunSummary(
        run=run,
        valid=valid,
        crossed=crossed,
        behind=behind,
        reason=_text(results.get("reason")) or "",
        seed=_text(results.get("seed")),
        reproduce=_text(results.get("reproduce")),
        running=running,
        faults=planned_kinds(run),
        expected=_expected(test.get("suite")),
    )


def _crossed(thresholds: Value) -> tuple[tuple[str, ...], bool]:
    """Returns a sentence for each crossed threshold, and whether the control node was behind."""
    rows = [row for row in thresholds if isinstance(row, dict)] if isinstance(thresholds, list) else []
    missed = [row for row in rows[:MAX_THRESHOLDS] if row.get("kept") is not True]
    behind = any(row.get("kept") == Verdict.UNKNOWN.as_json for row in missed)
    return tuple(str(row.get("crossed"))[:MAX_SENTENCE] for row in missed), behind


def _expected(case: Value) -> str | None:
    """Returns the verdict that the suite of a run expects, if it is `invalid` or `unknown`."""
    expectation = case.get("expectation") if isinstance(case, dict) else None
    expected = expectation.get("verdict") if isinstance(expectation, dict) else None
    return expected if expected in (Verdict.INVALID, Verdict.UNKNOWN) else None


def planned_kinds(run: Run) -> list[str]:
    """Returns the kinds of faults in a run's plan; none if the plan is missing, damaged or very long."""
    try:
        document = json.loads(run.read_bytes(run.plan_json, MAX_PLAN_BYTES))
        kinds = {fault["kind"] for fault in document["faults"]}
    except (InputError, ValueError, LookupError, TypeError, RecursionError):
        return []
    return sorted(kind for kind in kinds if isinstance(kind, str))[:MAX_KINDS]


def read_head(path: Path, keys: tuple[str, ...]) -> Mapping[str, Value]:
    """Reads some members of a JSON object from the first bytes of its file, without reading the rest.

    Returns:
        Those of `keys` that are complete within the head, before anything malformed; none if there is no such file.
    """
    try:
        with below.open_file(path.parent, path) as file:
            text = file.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return {}
    members: dict[str, Value] = {}
    decoder = json.JSONDecoder()
    separator = re.compile(r"\s*[{,]\s*(?=\")")
    colon = re.compile(r"\s*:\s*")
    position = 0
    with contextlib.suppress(ValueError, RecursionError):
        while len(members) < len(keys):
            before = separator.match(text, position)
            if before is None:
                break
            name, position = decoder.raw_decode(text, before.end())
            between = colon.match(text, position)
            if between is None:
                break
            value, position = decoder.raw_decode(text, between.end())
            if position == HEAD_BYTES:
                break  # the head may end in the middle of a number
            if name in keys:
                members[name] = value
    return members


def _text(value: Value) -> str | None:
    return None if value is None else str(value)


def _age_key(name: str) -> tuple[str, int]:
    base, _, suffix = name.partition("-")
    return base, int(suffix or 1)


def _folders(path: Path) -> list[Path]:
    """Returns the real folders in `path`; none if it is unreadable."""
    try:
        with os.scandir(path) as entries:
            return [path / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _is_run(path: Path) -> bool:
    return path.is_dir() and any((path / name).is_file() for name in ("test.json", "history.jsonl", "results.json"))


def point(link: Path, target: Path) -> None:
    """Makes `link` a relative symbolic link to `target`, in one step."""
    temporary = link.with_name(f".{link.name}.{secrets.token_hex(4)}.tmp")
    temporary.symlink_to(os.path.relpath(target, link.parent))
    temporary.replace(link)


def unpoint(link: Path, target: Path) -> None:
    """Removes a symbolic link, if it still leads to `target`."""
    with contextlib.suppress(OSError):
        if link.is_symlink() and link.resolve() == target.resolve():
            link.unlink()
