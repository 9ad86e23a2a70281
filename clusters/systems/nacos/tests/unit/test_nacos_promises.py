"""Nacos has no compare-and-set."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from tests.trials import settled_by


def test_the_options_of_a_register_follow_the_promise() -> None:
    """There are reads and writes only."""
    with settled_by("--system", "nacos", "--workload", "register") as settled:
        assert settled.options.values()["mix"] == "2:1:0"


def test_what_cannot_work_is_refused_before_anything_starts() -> None:
    """With the options to give; no cluster was opened."""
    with pytest.raises(InputError, match="give --mix 2:1:0"), settled_by("--system", "nacos", "--mix", "1:1:1"):
        pass
