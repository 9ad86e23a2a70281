"""Reads and writes below a folder with foreign content follow no link."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from harness.console import below

if TYPE_CHECKING:
    from pathlib import Path

HIDDEN = "a key that only its owner may read"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Makes a folder with links out of it: a file and a folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text(HIDDEN)
    root = tmp_path / "run"
    (root / "real").mkdir(parents=True)
    (root / "real" / "file").write_text("ours")
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "inner").symlink_to("real")
    os.mkfifo(root / "pipe")
    return root


@pytest.mark.parametrize("path", ["file", "folder/secret", "inner/file", "real/../file", "../outside/secret"])
def test_no_link_is_read_or_written(root: Path, path: str) -> None:
    """Neither the file nor a folder on the way may be a link."""
    with pytest.raises((OSError, ValueError)):
        below.open_file(root, root / path)
    if path != "file":
        with pytest.raises((OSError, ValueError)):
            below.replace_file(root, root / path, b"x")
    with pytest.raises((OSError, ValueError)):
        below.open_new_text(root, root / path)
    assert (root.parent / "outside" / "secret").read_text() == HIDDEN
    assert sorted(entry.name for entry in (root.parent / "outside").iterdir()) == ["secret"]


def test_a_link_is_replaced_and_its_target_stays(root: Path) -> None:
    """A write replaces the link itself."""
    below.replace_file(root, root / "file", b"new")
    assert not (root / "file").is_symlink()
    assert (root / "file").read_bytes() == b"new"
    assert (root.parent / "outside" / "secret").read_text() == HIDDEN


def test_the_error_names_a_link(root: Path) -> None:
    """The error of a link has the words symbolic link."""
    for path in ("file", "folder/secret"):
        with pytest.raises(OSError, match="a symbolic link"):
            below.open_file(root, root / path)
    with pytest.raises(OSError, match="a symbolic link"):
        below.is_file(root, root / "file")


def test_only_regular_files_are_opened(root: Path) -> None:
    """A pipe or a folder is an error at once."""
    for path in ("pipe", "real"):
        with pytest.raises(OSError, match="not a regular file"):
            below.open_file(root, root / path)


def test_files_are_read_written_and_found(root: Path) -> None:
    """Regular files in the folder work, also if the path of the folder has a link."""
    link = root.parent / "link"
    link.symlink_to(root)
    for top in (root, link):
        with below.open_file(top, top / "real" / "file") as file:
            assert file.read() == b"ours"
        below.replace_file(top, top / "new" / "deep" / "file", b"made")
        assert (root / "new" / "deep" / "file").read_bytes() == b"made"
        assert below.is_file(top, top / "real" / "file")
        assert not below.is_file(top, top / "real" / "none")
        assert below.is_folder(top, top / "real")
        assert below.is_folder(top, top)
        assert not below.is_folder(top, top / "folder")
    with below.open_new_text(root, root / "real" / "file") as file:
        file.write("again")
    assert (root / "real" / "file").read_text() == "again"


def test_a_walk_names_links_and_does_not_enter_them(root: Path) -> None:
    """It goes no deeper than `deepest`."""
    names = {str(path.relative_to(root)) for path, _ in below.walk(root, root, deepest=3)}
    assert names == {"file", "folder", "inner", "pipe", "real", "real/file"}
    assert "real/file" not in {str(path.relative_to(root)) for path, _ in below.walk(root, root, deepest=0)}
