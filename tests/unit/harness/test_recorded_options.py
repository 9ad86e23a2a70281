"""The options of a record, which may come from anyone."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from harness.console.sources import recorded
from harness.errors import InputError

OPTIONS = (
    click.Option(["--program"], type=click.Path(path_type=Path), default=None),
    click.Option(["--rate"], type=float, default=5.0),
)


def test_no_path_is_taken_from_a_record() -> None:
    """A run that names a file of this machine is refused, whatever system has the option."""
    with pytest.raises(InputError, match=r"no path that a run names.*give --program there"):
        recorded(OPTIONS, {"program": "/etc/passwd", "rate": 1.0}, places=(), source="test.json")
    assert recorded(OPTIONS, {"program": None, "rate": 1.0}, places=(), source="test.json") == ({"rate": 1.0}, [])
    assert recorded(OPTIONS, {"program": "/etc/passwd"}, places=("program",), source="x") == ({"rate": 5.0}, ["--rate"])
