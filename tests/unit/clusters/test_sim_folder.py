"""Faults of files in a folder of this machine: what they change, what they leave alone, and what they report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.sim.folder import Folder
from harness.damage import Damaging, How
from harness.errors import InfrastructureError, NodeError

if TYPE_CHECKING:
    from pathlib import Path

SPARSE_BYTES = 1 << 32


@pytest.fixture
def disk(tmp_path: Path) -> Folder:
    """The disk of n1, with a log whose end was never written, and an index deeper in the folder."""
    folder = tmp_path / "n1"
    (folder / "store").mkdir(parents=True)
    with (folder / "a.log").open("wb") as file:
        file.write(bytes(range(1, 101)))
        file.truncate(SPARSE_BYTES)
    (folder / "store" / "b.index").write_bytes(b"index" + bytes(10))
    (folder / "empty.log").write_bytes(bytes(5))
    return Folder("n1", lambda: folder)


def test_the_written_end_is_cut_off(disk: Folder, tmp_path: Path) -> None:
    """Zeros after it go too. An empty file of 4 GiB takes no time."""
    changed = disk.damage(Damaging(how=How.CUT, pattern="*.log", pick=0.9, amount=30))
    assert (changed.file, changed.before_bytes, changed.after_bytes) == ("/data/a.log", SPARSE_BYTES, 70)
    assert (tmp_path / "n1" / "a.log").read_bytes() == bytes(range(1, 71))
    assert disk.damage(Damaging(how=How.CUT, pattern="a.log", pick=0.0, amount=1000)).after_bytes == 0


def test_written_bytes_behind_a_hole_count(disk: Folder, tmp_path: Path) -> None:
    """The last written byte decides, wherever it is."""
    with (tmp_path / "n1" / "a.log").open("r+b") as file:
        file.seek(1 << 31)
        file.write(b"end")
    assert disk.damage(Damaging(how=How.CUT, pattern="*", pick=0.0, amount=1)).after_bytes == (1 << 31) + 2


def test_bits_flip_where_the_report_says(disk: Folder, tmp_path: Path) -> None:
    """The same numbers flip the same bits. A pattern can name a file without its folder."""
    path = tmp_path / "n1" / "store" / "b.index"
    before = path.read_bytes()
    changed = disk.damage(Damaging(how=How.FLIP, pattern="b.index", pick=0.5, amount=3, seed=7))
    after = path.read_bytes()
    differing = [index for index, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert (changed.file, list(changed.places), len(differing)) == ("/data/store/b.index", differing, 3)
    assert all((before[index] ^ after[index]).bit_count() == 1 and index < len("index") for index in differing)
    disk.damage(Damaging(how=How.FLIP, pattern="store/b.index", pick=0.5, amount=3, seed=7))
    assert path.read_bytes() == before


def test_no_link_leads_out_of_the_folder(disk: Folder, tmp_path: Path) -> None:
    """A link is no file with data. A new disk removes it, and leaves what it leads to."""
    other = tmp_path / "other"
    other.write_text("data")
    (tmp_path / "n1" / "link").symlink_to(other)
    with pytest.raises(NodeError, match="no file with data matches link in /data"):
        disk.damage(Damaging(how=How.CUT, pattern="link", pick=0.0, amount=1))
    lost = disk.lose_all()
    assert (lost.files, lost.changed) == (4, 4)
    assert other.read_text() == "data"
    with pytest.raises(NodeError, match="no file with data matches \\* in /data"):
        disk.damage(Damaging(how=How.FLIP, pattern="*", pick=0.0, amount=1, seed=1))


def test_power_is_not_lost(disk: Folder) -> None:
    """A folder keeps what programs write, so the error says so."""
    with pytest.raises(InfrastructureError, match="n1 runs a program of this machine, whose disk keeps what it wrote"):
        disk.lose_power()
