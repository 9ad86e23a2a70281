"""A malformed member of a run's file is an error that names the file, and never a traceback."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import InputError
from results.store.store import Run
from results.stored.document import build
from results.stored.load import load_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRONG: tuple[Any, ...] = (None, True, -1, 0.5, 10**400, -(10**18), "x", [], {}, [[None]], {"x": []}, "\x00")
# Members that are rebuilt from the history, so nobody reads them, or that may have any value.
NOT_READ = {"valid", "reason", "test", "seed", "reproduce", "started", "counts", "availability", "latency", "versions",
            "artifact", "left_out", "leadership", "violations", "counterexample"}  # fmt: skip


def places(document: Any, depth: int) -> Iterator[tuple[Any, ...]]:
    """Yields the path to each member of a document, down to a depth; of a list only its first member."""
    if depth and isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(min(1, len(document))):
            yield (key,)
            for rest in places(document[key], depth - 1):
                yield (key, *rest)


def changed(document: Any, way: tuple[Any, ...], value: Any) -> str:
    """Returns the text of a document with one member replaced, or removed if the value is `...`."""
    copied = copy.deepcopy(document)
    holder = copied
    for key in way[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[way[-1]]
    else:
        holder[way[-1]] = value
    return json.dumps(copied)


def refusal(run: Run) -> str | None:
    """Returns the error on reading a run's record; None if there is none."""
    try:
        build(load_record(run))
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", ["test.json", "results.json"])
def test_any_member_may_be_wrong(stored_run: Run, tmp_path: Path, name: str) -> None:
    """Each member is removed or gets another type: the record is read, or an error names the file."""
    run = Run(tmp_path)
    for part in ("test.json", "results.json"):
        (tmp_path / part).write_bytes((stored_run.path / part).read_bytes())
    document = json.loads((tmp_path / name).read_text(encoding="utf-8"))
    tried = refused = 0
    for way in places(document, 4):
        if name == "results.json" and way[0] in NOT_READ:
            continue
        for value in (..., *WRONG):
            (tmp_path / name).write_text(changed(document, way, value), encoding="utf-8")
            tried += 1
            said = refusal(run)
            refused += said is not None
            assert said is None or (name in said and len(said) < 1000), (way, value, said)
    assert tried > 200
    assert refused > tried / 4
