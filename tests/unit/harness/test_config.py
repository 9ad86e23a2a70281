"""`labrys.toml` sets defaults, and an unknown entry is an error."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from harness.console.config import as_defaults, load_config, refuse_unread
from harness.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = {"time-limit": ("time_limit", False), "tag": ("tag", True), "cluster": ("cluster_kind", False)}


def test_keys_may_be_written_with_dashes(tmp_path: Path) -> None:
    """A key is the long name of an option, with dashes or underscores."""
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
def test_a_bad_entry_is_refused(tmp_path: Path, table: dict[str, object], message: str) -> None:
    """The error of an unknown key or a bad value has the file and the expectation."""
    with pytest.raises(InputError, match=message):
        as_defaults(tmp_path / "labrys.toml", "test", table, KNOWN)


@pytest.mark.parametrize("content", [b"[test", b"\xff\xfe", b"seed = 1"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    """The error of a file that is not TOML, not text, or has values at its top names the file."""
    path = tmp_path / "labrys.toml"
    path.write_bytes(content)

    with pytest.raises(InputError, match=r"labrys\.toml"):
        load_config(path, ["test"], named=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[tset]", r"the table \[tset\] has the name of no command. Did you mean 'test'"),
        ("[plan]\nrate = 3", r"takes its defaults from \[test\]"),
    ],
)
def test_a_table_without_effect_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """A table must have the name of a command with its own defaults."""
    path = tmp_path / "labrys.toml"
    path.write_text(content)

    with pytest.raises(InputError, match=message):
        load_config(path, ["test", "plan"], named=True)


def test_a_variable_without_effect_is_refused() -> None:
    """The message names the variable with an effect."""
    refuse_unread({"LABRYS_TEST_RATE": "3", "LABRYS_PLANS": "3"}, "LABRYS")
    with pytest.raises(InputError, match=r"LABRYS_PLAN_RATE: .*set LABRYS_TEST_RATE instead"):
        refuse_unread({"LABRYS_PLAN_RATE": "3"}, "LABRYS")


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a `labrys.toml` in a folder, and lets the process look like root."""
    path = tmp_path / "labrys.toml"
    path.write_text("[check]\nmodel = 'noop'\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("SUDO_UID", raising=False)
    return path


def owned_by(monkeypatch: pytest.MonkeyPatch, uid: int, mode: int = 0o644, *, link_uid: int | None = None) -> None:
    """Gives each file this owner and mode, and each link the owner `link_uid`."""
    fields = (0, 0, 1, None, 0, 0, 0, 0, 0)
    file = os.stat_result((stat.S_IFREG | mode, *fields[:3], uid, *fields[4:]))
    link = file if link_uid is None else os.stat_result((stat.S_IFLNK | 0o777, *fields[:3], link_uid, *fields[4:]))
    monkeypatch.setattr(os, "fstat", lambda _: file)
    monkeypatch.setattr("pathlib.Path.lstat", lambda _: link)


@pytest.mark.parametrize(
    ("uid", "mode", "link_uid"),
    [(1000, 0o644, None), (0, 0o664, None), (0, 0o646, None), (0, 0o644, 1000), (1001, 0o600, None)],
)
def test_root_takes_no_defaults_from_a_file_that_others_can_write(
    found: Path, monkeypatch: pytest.MonkeyPatch, uid: int, mode: int, link_uid: int | None
) -> None:
    """The file or the link belongs to another user, or others may write the file."""
    owned_by(monkeypatch, uid, mode, link_uid=link_uid)
    with pytest.raises(InputError, match=r"would set defaults for root.*name it with --config"):
        load_config(found, ["check"], named=False)
    assert load_config(found, ["check"], named=True) == {"check": {"model": "noop"}}


def test_the_user_of_sudo_is_trusted(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who became root by sudo may have defaults; root's own file counts too."""
    owned_by(monkeypatch, 1000)
    monkeypatch.setenv("SUDO_UID", "1000")
    assert load_config(found, ["check"], named=False) == {"check": {"model": "noop"}}
    monkeypatch.setenv("SUDO_UID", "1000x")
    with pytest.raises(InputError, match="user 1000 owns it"):
        load_config(found, ["check"], named=False)
    owned_by(monkeypatch, 0)
    assert load_config(found, ["check"], named=False) == {"check": {"model": "noop"}}


def test_other_users_take_the_defaults_of_the_folder(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is only for root."""
    owned_by(monkeypatch, 1000, 0o666)
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert load_config(found, ["check"], named=False) == {"check": {"model": "noop"}}
