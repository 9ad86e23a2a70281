"""The state of a bisection: a file with each run so far, from which `--resume` goes on.

A search depends on the results of its runs alone. So the file has these, and a resumed search takes them again in their order
in place of carrying them out. The file may come from anyone: it has a maximum size, each member is checked, and nothing in it
is a command, an option or a path.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from harness.console.documents import parse_json, read_bytes
from harness.console.members import Duration, read, written
from harness.errors import InputError
from results.store.errors import StoreError
from results.store.store import fresh_folder, write_text

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

FOLDER: Final = "bisections"
FILE: Final = "bisect.json"
MAX_BYTES: Final = 32 << 20
MOST_RUNS: Final = 100_000
Text = Annotated[str, Meta(max_length=20_000)]


class PastRun(Struct, frozen=True, kw_only=True):
    """A run of a bisection.

    Attributes:
        point: The name of its value.
        seed: Its seed, as text.
        bad: Whether it shows the bug; None: it is neither good nor bad.
        why: The invalid parts, or why it is neither.
        seconds: Its length, with that of a build.
        built: Whether there was a program to run; False: its build failed.
    """

    point: Text
    seed: Annotated[str, Meta(pattern=r"^\d{1,20}$")]
    bad: bool | None
    why: Text
    seconds: Duration
    built: bool = True


class Search(Struct, frozen=True, kw_only=True):
    """What a bisection searches; a resumed one must search the same.

    Attributes:
        run: The command of the run that shows the bug.
        over: The option, or `mends`.
        points: The values, from the good end to the bad one.
        parts: The parts of the verdict that make a run bad.
        error: The probability of a wrong answer.
        rates: The rates of good and bad values, if the user gives them.
        seed_alone: Whether one run decides each value.
        build: What makes the values, as words; empty: they are there.
    """

    run: Text
    over: Text
    points: list[Text]
    parts: list[Text]
    error: float
    rates: list[float] | None
    seed_alone: bool
    build: list[Text] = []


class Document(Struct, frozen=True, kw_only=True):
    """The document of `bisect.json`."""

    format: Literal["labrys-bisect"] = "labrys-bisect"
    version: Literal[1] = 1
    search: Search
    runs: Annotated[list[PastRun], Meta(max_length=MOST_RUNS)]


class State:
    """The file of a bisection.

    Attributes:
        path: The file.
        runs: The runs so far.
    """

    def __init__(self, path: Path, search: Search, runs: list[PastRun]) -> None:
        self.path = path
        self.runs = runs
        self._search = search

    @classmethod
    def create(cls, store: Path, test: str, search: Search, utc: datetime) -> State:
        """Makes the folder of a new bisection, `bisections/TEST/TIME` in the store.

        Raises:
            StoreError: It cannot be made.
        """
        parent = store / FOLDER / test
        try:
            state = cls(fresh_folder(parent, utc) / FILE, search, [])
        except OSError as error:
            raise StoreError(f"a folder in {parent} could not be made: {error.strerror or error}") from error
        state.save()
        return state

    @classmethod
    def read(cls, path: Path, search: Search) -> State:
        """Reads the file of a bisection.

        Raises:
            InputError: It cannot be read, is not such a document, or another bisection made it.
        """
        document = parse_json(read_bytes(path, MAX_BYTES), str(path))
        try:
            stored = read(document, Document, "")
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        for name in Search.__struct_fields__:
            here: Any = getattr(search, name)
            stored_value: Any = getattr(stored.search, name)
            if here != stored_value:
                raise InputError(
                    f"{path} is of another bisection: its {name.replace('_', ' ')} differs from that of this command line; "
                    "give the same options, or leave out --resume"
                )
        unknown = next((run.point for run in stored.runs if run.point not in search.points), None)
        if unknown is not None:
            raise InputError(f"{path}: expected runs of the values of its search, found one of {unknown[:80]!r}")
        return cls(path, search, list(stored.runs))

    def add(self, run: PastRun) -> None:
        """Adds a run, and writes the file.

        Raises:
            StoreError: It cannot be written.
        """
        self.runs.append(run)
        self.save()

    def save(self) -> None:
        """Writes the file in one step."""
        document = written(Document(search=self._search, runs=self.runs))
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
        write_text(self.path.parent, self.path, f"{text}\n")
