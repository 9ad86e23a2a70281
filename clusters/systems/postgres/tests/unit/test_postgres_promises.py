"""PostgreSQL promises the level of its transactions."""

from __future__ import annotations

import shlex

import pytest

from tests.trials import settled_by


@pytest.mark.parametrize(
    ("isolation", "level"), [("serializable", "serializable"), ("repeatable-read", "snapshot-isolation")]
)
def test_the_promise_depends_on_the_options_of_the_system(isolation: str, level: str) -> None:
    """The reproduce line does not say the level."""
    words = ("--system", "postgres", "--workload", "list-append", "--isolation", isolation, "--seed", "1")
    with settled_by(*words) as settled:
        assert settled.options.values()["consistency_model"] == level
        assert "--consistency-model" not in settled.reproduce
    with settled_by(*shlex.split(settled.reproduce)[2:]) as repeated:
        assert repeated.options.values() == settled.options.values()
