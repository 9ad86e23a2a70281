"""Reads of DLedger's log are fresh, and nobody follows it."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from tests.trials import settled_by


def test_the_options_of_a_log_follow_the_promise() -> None:
    """It is linearizable."""
    with settled_by("--system", "dledger-log", "--workload", "log") as settled:
        assert settled.options.values()["linearizable"] is True


def test_what_cannot_work_is_refused_before_anything_starts() -> None:
    """With the options to give; no cluster was opened."""
    with (
        pytest.raises(InputError, match="leave out --follow"),
        settled_by("--system", "dledger-log", "--workload", "log", "--follow"),
    ):
        pass
