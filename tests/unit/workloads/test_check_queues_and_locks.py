"""`labrys check` decides histories of queues and locks that were recorded elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.jepsen import write_history
from commands.check.command import check
from harness.errors import InputError
from harness.pairing import events_of
from tests.unit.workloads.histories import done

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.op import Operation

QUEUE = [
    done(0, 1, 0, "enqueue", 1, 1),
    done(2, 3, 0, "enqueue", 2, 2),
    done(4, 5, 1, "dequeue", None, 1),
    done(6, 7, 1, "drain", None, [2, 1]),
]
LOCK = [
    done(0, 1, 0, "acquire", None, 7),
    done(2, 3, 1, "acquire", None, 8),
    done(4, 5, 0, "release", 7, 7),
]


def decide(
    path: Path, operations: Sequence[Operation], capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[str, Any]:
    """Returns the output of `labrys check` for a history in EDN."""
    write_history(path / "history.edn", events_of(operations))
    words = [str(path / "history.edn"), "--format", "json", *arguments]
    check.main(words, standalone_mode=False)
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


@pytest.mark.parametrize(
    ("workload", "operations", "settings", "kind"),
    [
        ("queue", QUEUE, [], None),
        ("queue", QUEUE, ["delivery=exactly-once"], "duplicated"),
        ("queue", QUEUE[:3], [], "unknown"),
        ("queue", [*QUEUE[:3], done(6, 7, 1, "drain", None, [])], [], "lost"),
        ("queue", [*QUEUE[:2], done(4, 5, 1, "drain", None, [2, 1])], ["order=realtime"], "reordered"),
        ("lock", LOCK, [], "two-holders"),
        ("lock", LOCK, ["lease-s=0.000000001"], "unknown"),
        ("lock", LOCK[:2], [], "unknown"),
        ("lock", LOCK[:2], ["sessions=false"], "two-holders"),
    ],
)
def test_a_history_from_elsewhere_is_decided(
    *,
    workload: str,
    operations: Sequence[Operation],
    settings: Sequence[str],
    kind: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The judge of the named workload decides, with its judging options."""
    options = [word for setting in settings for word in ("--workload-option", setting)]
    said = decide(tmp_path, operations, capsys, "--workload", workload, *options)
    valid = {None: True, "unknown": "unknown"}.get(kind, False)
    assert (said["valid"], said["workload"]) == (valid, workload)
    if valid is False:
        assert said["kind"] == kind


def test_what_is_no_history_of_a_queue_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error has the event and the expected form."""
    with pytest.raises(InputError, match="event 0: expected the function enqueue, dequeue or drain, found 'acquire'"):
        decide(tmp_path, LOCK, capsys, "--workload", "queue")
