"""The output folder of an analysis: complete or absent, and the same after a rerun.

Layout, under OUT:

    manifest.json                     the index of the contents; readers look only here
    generations/<id>/<table>/...      tables of Parquet, written by one job
    index.html, pictures/             the last job's page and its pictures, made of the tables

The rule: a job writes into a generation of its own. No reader looks at it until the manifest names it, and the manifest is
replaced in one step. So a crash leaves the old tables unchanged, and a reader never sees half of a new one. The manifest of a
full job names only its own generation. An incremental job adds its generation to the earlier ones, and lists which of their
runs it has read again; those rows no longer count. Generations that no manifest names are deleted.
"""

from __future__ import annotations

import json
import os
import platform
import uuid
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from results.pipeline.errors import BadOutput
from results.pipeline.schema import FORMAT, VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input

MANIFEST: Final = "manifest.json"
WHOLE: Final = frozenset({"trends"})  # tables that each job makes again from all runs, so that only the last one counts
OPERATIONS: Final = "operations"  # a table that only some jobs write
LOCK: Final = "_running.json"
GENERATIONS: Final = "generations"
STAGED: Final = "_staged"
PICTURES: Final = "pictures"
MAX_MANIFEST_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The tables of one job.

    Attributes:
        id: Its folder's name.
        tables: The names of its tables.
        superseded: Runs in it that a later generation has read again.
    """

    id: str
    tables: Sequence[str]
    superseded: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of an output folder.

    Attributes:
        written: The time of writing, in UTC.
        options: The options that verdicts depend on; an incremental job must have the same.
        generations: From the oldest to the newest.
        sources: The fingerprint of each source that was read, by path.
        runs: The runs of each source.
    """

    written: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    generations: Sequence[Generation] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def tables(self, root: str) -> dict[str, list[str]]:
        """Returns the folders of each table, from the oldest to the newest, by the table's name."""
        names = sorted({name for generation in self.generations for name in generation.tables})
        return {
            name: [
                f"{root}/{GENERATIONS}/{generation.id}/{name}"
                for generation in self.generations
                if name in generation.tables
            ]
            for name in names
        }


def load_manifest(files: Files, root: str) -> Manifest | None:
    """Returns the manifest of an output folder; None if there is none.

    Raises:
        BadOutput: The file is something else, or has another version.
    """
    path = f"{root}/{MANIFEST}"
    if not files.exists(path):
        return None
    try:
        document = json.loads(files.read(path, MAX_MANIFEST_BYTES))
        actual = (document["format"], document["version"])
        if actual != (FORMAT, VERSION):
            raise BadOutput(
                f"{path}: expected {FORMAT} version {VERSION}, found {actual[0]} {actual[1]}; choose another --out"
            )
        return Manifest(
            written=str(document["written"]),
            options=dict(document["options"]),
            generations=[Generation(**generation) for generation in document["generations"]],
            sources=dict(document["sources"]),
            runs=dict(document["runs"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadOutput(f"{path}: is not the manifest of an analysis: {type(error).__name__}: {error}") from error


class Output:
    """An output folder while a job writes to it."""

    def __init__(self, files: Files, root: str) -> None:
        """Locks the folder for this job.

        Raises:
            BadOutput: It contains something else, or another job is writing to it.
        """
        self._files = files
        self.root = files.qualified(root).rstrip("/")
        self.before = load_manifest(files, self.root) or Manifest()
        self._refuse_foreign()
        self._lock()
        self.id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        self._sweep(self.before)

    @property
    def folder(self) -> str:
        """The folder of this job's generation."""
        return f"{self.root}/{GENERATIONS}/{self.id}"

    @property
    def staged(self) -> str:
        """A folder for temporary files of the job."""
        return f"{self.folder}/{STAGED}"

    def table(self, name: str) -> str:
        """Returns the folder of a table of this job."""
        return f"{self.folder}/{name}"

    def plan(
        self,
        *,
        tables: Sequence[str],
        options: Mapping[str, Any],
        sources: Mapping[str, str],
        runs: Mapping[str, Sequence[str]],
        incremental: bool,
    ) -> Manifest:
        """Returns the manifest of the folder with this job's tables.

        Args:
            tables: The names of the written tables.
            options: The options that verdicts depend on.
            sources: The fingerprints of the sources that were read.
            runs: The runs of each source.
            incremental: Whether the earlier generations still count.
        """
        earlier = self.before if incremental else Manifest()
        anew = {run for path in sources for run in (*earlier.runs.get(path, ()), *runs[path])}
        return Manifest(
            written=datetime.now(UTC).isoformat(timespec="seconds"),
            options=options,
            generations=[
                *(replace(old, superseded=sorted({*old.superseded, *anew})) for old in earlier.generations),
                Generation(id=self.id, tables=sorted(tables)),
            ],
            sources={**earlier.sources, **sources},
            runs={**earlier.runs, **runs},
        )

    def changed(self, sources: Sequence[Input], options: Mapping[str, Any]) -> list[Input]:
        """Returns the sources that are new or changed since the manifest was written.

        Args:
            sources: The sources at the user's paths.
            options: The options that verdicts depend on.

        Raises:
            BadOutput: The folder has an analysis with other options.
        """
        before = self.before
        if before.generations and dict(before.options) != options:
            raise BadOutput(
                f"{self.root}: was made with {before.options}, and this job has {options}; run it without --incremental"
            )
        return [source for source in sources if before.sources.get(source.path) != source.fingerprint]

    def known(self, sources: Sequence[Input]) -> dict[str, str]:
        """Returns the sources of those runs in the folder that a job which reads `sources` does not read."""
        anew = {source.path for source in sources}
        return {run: path for path, names in self.before.runs.items() if path not in anew for run in names}

    def commit(self, manifest: Manifest, pages: Mapping[str, bytes]) -> None:
        """Puts a manifest into effect, and replaces the page and the pictures.

        Args:
            manifest: The manifest.
            pages: Files by name; pages go to the top of the folder, and pictures into their own folder.
        """
        self._files.delete(self.staged)
        document = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
        self._files.replace(f"{self.root}/{MANIFEST}", (json.dumps(document, indent=1) + "\n").encode())
        self._files.delete(f"{self.root}/{PICTURES}")
        for name, content in pages.items():
            folder = self.root if name.endswith(".html") else f"{self.root}/{PICTURES}"
            self._files.replace(f"{folder}/{name}", content)
        self._sweep(manifest)
        self._files.delete(f"{self.root}/{LOCK}")

    def clear(self) -> None:
        """Deletes the tables that this job has written so far."""
        self._files.delete(self.folder)

    def abort(self) -> None:
        """Restores the folder to its state before the job."""
        self.clear()
        self._files.delete(f"{self.root}/{LOCK}")

    def _refuse_foreign(self) -> None:
        """Refuses a folder with other contents: a typing error must not fill a store with tables."""
        if self.before.generations or not self._files.exists(self.root):
            return
        ours = {GENERATIONS, LOCK, f"{MANIFEST}.partial"}
        others = [entry.name for entry in self._files.folder(self.root) if entry.name not in ours]
        if others:
            raise BadOutput(
                f"{self.root}: expected a new folder, or one of an earlier analysis; found {others[0]} in it"
            )

    def _lock(self) -> None:
        path = f"{self.root}/{LOCK}"
        owner = {"host": platform.node(), "pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        content = json.dumps(owner).encode()
        if self._files.create(path, content):
            return
        try:
            other = json.loads(self._files.read(path, MAX_MANIFEST_BYTES))
            gone = other["host"] == owner["host"] and not _is_running(int(other["pid"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadOutput(
                f"{path}: expected the lock of a job: {error}; delete the file if no job writes to this folder"
            ) from error
        if not gone:
            raise BadOutput(
                f"{self.root}: another job writes here since {other['since']} (process {other['pid']} on {other['host']}); "
                f"if that job has ended, delete {path}"
            )
        self._files.replace(path, content)

    def _sweep(self, manifest: Manifest) -> None:
        """Deletes generations that no manifest names."""
        named = {generation.id for generation in manifest.generations}
        folder = f"{self.root}/{GENERATIONS}"
        if self._files.exists(folder):
            for entry in self._files.folder(folder):
                if entry.name not in named:
                    self._files.delete(entry.path)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid != os.getpid()
