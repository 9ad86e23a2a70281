"""Reading ends with a sentence before it takes all memory."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from checker.formats.read import read_source
from checker.formats.source import Source
from harness import memory
from harness.console import process
from harness.errors import InfrastructureError
from harness.memory import Room, free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_free_memory_is_known() -> None:
    """On Linux there is some, and less than a limit of the address space."""
    free = free_bytes()
    assert free is not None
    assert 1 << 20 < free < 1 << 50


def test_a_source_that_takes_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error tells how much was read, how much that took, and what was free."""
    monkeypatch.setattr(memory, "free_bytes", lambda: 100 << 20)
    sizes = {1: 50 << 20, 2: 10 << 20}
    monkeypatch.setattr(memory, "_pages", sizes.__getitem__)
    room = Room("h")
    for _ in range(100):
        room.count(1 << 20)
    sizes[1] = 130 << 20
    with pytest.raises(InfrastructureError, match=r"^h: .* the first 140 MiB of it took 80 MiB, and 100 MiB were free"):
        room.count(40 << 20)


def test_unknown_memory_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another operating system may not tell it."""
    monkeypatch.setattr(memory, "free_bytes", lambda: None)
    room = Room("h")
    room.count(1 << 60)
    room.hold(1 << 60, "it")


def test_a_history_is_read_with_this_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects of an array are counted as they come, as lines are."""
    event = json.dumps({"type": "ok", "process": 0, "f": "txn", "value": [["append", "x" * 5000, 1]]})
    taken = {1: 0, 2: 0}

    def pages(index: int) -> int:
        taken[1] += 1 << 20
        return taken[index]

    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    monkeypatch.setattr(memory, "_LOOK_BYTES", 1 << 18)
    monkeypatch.setattr(memory, "_pages", pages)
    for text in (f"[{','.join([event] * 200)}]", (event + "\n") * 200):
        with pytest.raises(InfrastructureError, match="MiB of it took"):
            read_source(Source("h", io.BytesIO(text.encode())), transactions="list-append")


def test_no_memory_at_all_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """If an allocation fails, the command ends with 255 and without a traceback."""

    def fails() -> int:
        raise MemoryError

    command: Callable[[], int] = fails
    with pytest.raises(SystemExit) as end:
        process.end_with(command)
    assert end.value.code == 255
    assert capsys.readouterr().err == f"{process.NO_MEMORY}\n"
