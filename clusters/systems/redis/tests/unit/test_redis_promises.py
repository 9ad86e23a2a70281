"""A lock of Redis is freed by its lease only."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from tests.trials import settled_by


def test_what_cannot_work_is_refused_before_anything_starts() -> None:
    """With the options to give; no cluster was opened."""
    advice = "give --no-sessions, and --lease-s or --ops-per-lock"
    with pytest.raises(InputError, match=advice), settled_by("--system", "redis", "--workload", "lock", "--sessions"):
        pass
