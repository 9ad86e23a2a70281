"""`labrys.toml` gives defaults, and never silently ignores what it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.config import as_defaults, load_config
from harness.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = {"time_limit": False, "tag": True}


def test_keys_may_be_written_with_dashes(tmp_path: Path) -> None:
    """A key is an option's long name, with dashes or underscores."""
    assert as_defaults(tmp_path, "test", {"time-limit": 5, "tag": ["a"]}, KNOWN) == {"time_limit": 5, "tag": ["a"]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"time-limt": 5}, "Did you mean 'time-limit'"),
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
        load_config(path)
