"""`labrys.toml` gives defaults, and never silently ignores what it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.config import as_defaults, load_config, refuse_unread
from harness.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = {"time-limit": ("time_limit", False), "tag": ("tag", True), "cluster": ("cluster_kind", False)}


def test_keys_may_be_written_with_dashes(tmp_path: Path) -> None:
    """A key is an option's long name, with dashes or underscores, whatever the parameter is called."""
    assert as_defaults(tmp_path, "test", {"time-limit": 5, "tag": ["a"]}, KNOWN) == {"time_limit": 5, "tag": ["a"]}
    assert as_defaults(tmp_path, "test", {"time_limit": 5}, KNOWN) == {"time_limit": 5}
    assert as_defaults(tmp_path, "test", {"cluster": "ssh"}, KNOWN) == {"cluster_kind": "ssh"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"time-limt": 5}, "Did you mean 'time-limit'"),
        ({"cluster-kind": "ssh"}, "Did you mean 'cluster'"),
        ({"time-limit": [5]}, "takes one value"),
        ({"tag": "a"}, "takes a list"),
        ({"time-limit": {"s": 5}}, "takes one value"),
    ],
)
def test_what_cannot_be_a_default_is_refused(tmp_path: Path, table: dict[str, object], message: str) -> None:
    """An unknown key or an unusable value is an error that names the file and what was expected."""
    with pytest.raises(InputError, match=message):
        as_defaults(tmp_path / "labrys.toml", "test", table, KNOWN)


@pytest.mark.parametrize("content", [b"[test", b"\xff\xfe", b"seed = 1"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    """A file that is not TOML, not text, or has values at its top is refused by name."""
    path = tmp_path / "labrys.toml"
    path.write_bytes(content)

    with pytest.raises(InputError, match=r"labrys\.toml"):
        load_config(path, ["test"])


@pytest.mark.parametrize(
    ("content", "message"),
    [("[tset]", "no command 'tset'. Did you mean 'test'"), ("[plan]\nrate = 3", r"takes its defaults from \[test\]")],
)
def test_a_table_that_nothing_reads_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """A table is named after a command that has defaults of its own."""
    path = tmp_path / "labrys.toml"
    path.write_text(content)

    with pytest.raises(InputError, match=message):
        load_config(path, ["test", "plan"])


def test_a_variable_that_nothing_reads_is_refused() -> None:
    """The message names the variable that is read instead."""
    refuse_unread({"LABRYS_TEST_RATE": "3", "LABRYS_PLANS": "3"}, "LABRYS")
    with pytest.raises(InputError, match=r"LABRYS_PLAN_RATE: .*set LABRYS_TEST_RATE instead"):
        refuse_unread({"LABRYS_PLAN_RATE": "3"}, "LABRYS")
