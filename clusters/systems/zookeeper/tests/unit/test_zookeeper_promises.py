"""A lock of ZooKeeper belongs to a session."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from tests.trials import settled_by


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("--system zookeeper --workload lock --no-sessions", "leave out --no-sessions"),
        ("--system zookeeper --workload lock --lease-s 60", "expected a lease from 0.4 to 4 seconds"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(words: str, advice: str) -> None:
    """With the options to give; no cluster was opened."""
    with pytest.raises(InputError, match=advice), settled_by(*words.split()):
        pass
