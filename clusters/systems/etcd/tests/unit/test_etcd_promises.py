"""A lock of etcd is freed by its lease only, so the options of `lock` follow."""

from __future__ import annotations

import shlex

import pytest

from harness.errors import InputError
from tests.trials import settled_by


def test_the_options_of_a_lock_follow_the_promise() -> None:
    """A lock has a lease and no session."""
    with settled_by("--system", "etcd", "--workload", "lock") as settled:
        values = settled.options.values()
        assert (values["sessions"], values["lease_s"]) == (False, 5.0)


def test_a_lock_without_promises_has_no_lease() -> None:
    """The reproduce line says `--no-promises`, because no option says that there is no lease."""
    locks = ("--workload", "lock", "--seed", "1", "--no-sessions", "--ops-per-lock", "50", "--no-promises")
    with settled_by("--system", "etcd", *locks) as settled:
        assert settled.options.values()["lease_s"] is None
        assert "--no-promises" in settled.reproduce
    with settled_by(*shlex.split(settled.reproduce)[2:]) as repeated:
        assert repeated.options.values() == settled.options.values()


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("--system etcd --workload lock --sessions", "give --no-sessions, and --lease-s or --ops-per-lock"),
        ("--system etcd --workload lock --no-promises", "give --no-sessions, and --lease-s or --ops-per-lock"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(words: str, advice: str) -> None:
    """With the options to give; no cluster was opened."""
    with pytest.raises(InputError, match=advice), settled_by(*words.split()):
        pass
