"""A simulated disk: only synced data certainly survives a power loss."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim import files
from clusters.sim.disk import SimDisk
from clusters.sim.host import DiskFull
from clusters.sim.world import SimWorld
from harness.damage import Damaging, How
from harness.errors import NodeError
from harness.world import Failing

if TYPE_CHECKING:
    from clusters.sim.host import Host


def test_a_power_loss_takes_what_was_not_synced() -> None:
    """After a power loss, a file is as it was at its last sync; a file that was never synced is gone."""
    disk = SimDisk("n1")
    disk.append("log", b"one")
    disk.sync("log")
    disk.append("log", b"two")
    disk.write("new", b"?")
    lost = disk.lose_power()
    assert (disk.names(), disk.read("log")) == (["log"], b"one")
    assert (lost.files, lost.changed, lost.bytes) == (2, 2, 4)


def test_syncs_of_a_growing_file_keep_all_of_it() -> None:
    """Each sync makes exactly the current content durable, also after a truncation or a replacement."""
    disk = SimDisk("n1")
    for text in (b"a", b"b", b"c"):
        disk.append("log", text)
        disk.sync("log")
    disk.truncate("log", 1)
    disk.sync("log")
    disk.append("log", b"d")
    disk.sync("log")
    disk.write("log", b"new")
    disk.lose_power()
    assert disk.read("log") == b"ad"


def test_a_removed_file_comes_back_unless_the_removal_was_synced() -> None:
    """`delete` is durable after `sync` of the same name."""
    disk = SimDisk("n1")
    for name in ("kept", "gone"):
        disk.write(name, b"x")
        disk.sync(name)
        disk.delete(name)
    disk.sync("gone")
    assert disk.names() == []
    disk.lose_power()
    assert disk.names() == ["kept"]
    with pytest.raises(FileNotFoundError):
        disk.read("gone")


def test_a_full_disk_refuses_and_leaves_the_file() -> None:
    """`DiskFull` is an OSError; existing files stay readable."""
    disk = SimDisk("n1")
    disk.append("log", b"one")
    disk.full = True
    assert not disk.has_room()
    for write in (disk.append, disk.write):
        with pytest.raises(OSError, match="no space left") as raised:
            write("log", b"two")
        assert isinstance(raised.value, DiskFull)
    assert disk.read("log") == b"one"
    disk.full = False
    assert disk.has_room()
    assert disk.names() == ["log"]


def test_damage_is_the_same_for_the_same_numbers_and_outlives_power() -> None:
    """As many bytes differ as were requested; the zeros after the data stay unchanged."""

    def flipped() -> bytes:
        disk = SimDisk("n1")
        disk.write("a.log", bytes(range(1, 101)) + bytes(50))
        disk.sync("a.log")
        changed = disk.damage(Damaging(how=How.FLIP, pattern="*.log", pick=0.5, amount=8, seed=3))
        assert len(changed.places) == 8
        assert max(changed.places) < 100
        disk.lose_power()
        return disk.read("a.log")

    assert flipped() == flipped() != bytes(range(1, 101)) + bytes(50)


def test_the_end_that_was_written_is_cut_off() -> None:
    """A cut counts from the last byte that is not zero; without a matching file it raises an error."""
    disk = SimDisk("n1")
    disk.write("log", b"abcdef\0\0")
    changed = disk.damage(Damaging(how=How.CUT, pattern="*", pick=0.0, amount=2))
    assert (disk.read("log"), changed.before_bytes, changed.after_bytes) == (b"abcd", 8, 4)
    with pytest.raises(NodeError, match="n1: no file with data matches"):
        disk.damage(Damaging(how=How.CUT, pattern="snapshot*", pick=0.0, amount=2))


def test_no_later_sync_makes_durable_what_a_failed_one_lost() -> None:
    """The bytes can be read. Only a new write of them helps; bytes after them are durable with the next sync."""
    disk = SimDisk("n1")
    disk.append("log", b"one ")
    disk.sync("log")
    disk.fail(1, Failing(call="fsync", pattern="l*", nth=1, times=1, error=errno.EIO))
    disk.append("log", b"two ")
    with pytest.raises(OSError, match="an error of the simulated disk"):
        disk.sync("log")
    disk.sync("log")
    disk.append("log", b"three")
    disk.sync("log")
    assert (disk.read("log"), disk.errors) == (b"one two three", 1)
    disk.lose_power()
    assert disk.read("log") == b"one \0\0\0\0three"
    disk.write("log", b"again")
    disk.sync("log")
    disk.lose_power()
    assert disk.read("log") == b"again"


def test_a_process_ends_by_an_error_of_its_disk_and_writes_its_files_again() -> None:
    """Its log has the error as no fatal one. What the failed sync left is durable after the next start, and not before."""
    world = SimWorld(("n1",), 1)
    machine = world.machines["n1"]

    class Writer:
        """Writes a file that is not there yet."""

        def __init__(self, host: Host) -> None:
            self._disk = host.disk

        def start(self) -> None:
            """Writes."""
            files.write_again(self._disk)
            if "vote" not in self._disk.names():
                files.write(self._disk, "vote", 7)

        def receive(self, sender: str, message: Any) -> None:
            """Does nothing."""

    machine.disk.fail(1, Failing(call="fsync", pattern="*", nth=1, times=1, error=errno.EIO))
    machine.start(Writer)
    assert not machine.runs
    assert machine.lines[-1] == "0.000000 ends: [Errno 5] an error of the simulated disk: 'vote'"
    machine.start(Writer)
    assert machine.runs
    machine.disk.lose_power()
    assert files.read(machine.disk, "vote") == 7


def test_calls_fail_from_the_nth_on_until_the_end_of_the_fault() -> None:
    """Other calls, other files and later calls work. A failed write leaves the file as it was."""
    disk = SimDisk("n1")
    seen: list[tuple[int, str, int, str]] = []
    disk.on_error = lambda *told: seen.append(told)
    disk.fail(4, Failing(call="write", pattern="log", nth=2, times=2, error=errno.EIO))
    outcomes = []
    for number in range(5):
        disk.write("other", b"x")
        try:
            disk.append("log", str(number).encode())
        except OSError:
            outcomes.append(number)
        if number == 2:
            disk.mend(4)
    assert (outcomes, disk.read("log")) == ([1, 2], b"034")
    assert seen == [(4, "write", 2, "log"), (4, "write", 3, "log")]


def test_a_file_gets_a_part_of_another_place_or_time() -> None:
    """What is read back says where. A helical share leaves all other parts whole. A lost power takes no damage back."""
    disk = SimDisk("n1")
    disk.write("log", b"aaaabbbbccccdddd")
    disk.sync("log")
    disk.keep()
    copied = disk.damage(Damaging(how=How.COPY, pattern="*", pick=0.0, amount=1, seed=1, chunk_bytes=4, share=(1, 4)))
    ((at,), (source,)) = copied.places, copied.sources
    assert (at, disk.read("log")[4:8]) == (4, b"aaaabbbbccccdddd"[source : source + 4])
    disk.lose_power()
    back = disk.damage(Damaging(how=How.ROLL_BACK, pattern="*", pick=0.0, amount=9, seed=1, chunk_bytes=4))
    assert (back.places, back.differ, disk.read("log")) == ((4,), 4, b"aaaabbbbccccdddd")
    with pytest.raises(NodeError, match=r"none of the 1 files .* changed since the files were kept"):
        disk.damage(Damaging(how=How.ROLL_BACK, pattern="*", pick=0.0, amount=1))
