"""The state of a node of the simulated Raft after a restart, from a whole or a damaged disk."""

from __future__ import annotations

from random import Random

import pytest

from clusters.sim.disk import SimDisk
from clusters.systems.sim_raft.messages import Entry, Snapshot
from clusters.systems.sim_raft.storage import LOG, PROMISES, SNAPSHOT, DamagedDiskError, Storage
from harness.damage import Damaging, How


def started(disk: SimDisk) -> Storage:
    """Returns the storage of a process that starts on this disk."""
    storage = Storage(disk, frozenset())
    storage.load()
    return storage


def entries(*terms: int) -> tuple[Entry, ...]:
    """Returns entries of these terms, with different contents."""
    return tuple(Entry(term, f"body {index} of {term}".encode()) for index, term in enumerate(terms))


def filled(disk: SimDisk) -> Storage:
    """Returns the storage of a node with five entries, in the terms 1, 1, 2, 2, 2."""
    storage = started(disk)
    storage.promise(2, "n3")
    storage.append(entries(1, 1, 2, 2, 2))
    return storage


def test_an_empty_disk_is_the_beginning() -> None:
    """A node that was never started has no term, no vote and no log."""
    storage = started(SimDisk("n1"))
    assert (storage.term, storage.vote, storage.last, storage.last_term, storage.snapshot) == (0, None, 0, 0, None)
    assert storage.term_at(0) == 0
    assert storage.term_at(1) is None


def test_everything_outlives_a_power_loss() -> None:
    """Term, vote and entries are synced before the call returns."""
    disk = SimDisk("n1")
    filled(disk)
    disk.lose_power()
    storage = started(disk)
    assert (storage.term, storage.vote) == (2, "n3")
    assert storage.after(0, 99) == entries(1, 1, 2, 2, 2)
    assert storage.repairs_until == 0


def test_a_cut_outlives_a_power_loss() -> None:
    """Dropped entries do not come back, and the log continues after the cut."""
    disk = SimDisk("n1")
    storage = filled(disk)
    storage.cut(4)
    storage.append(entries(3))
    disk.lose_power()
    assert [entry.term for entry in started(disk).entries] == [1, 1, 2, 3]
    assert started(disk).repairs_until == 0


def test_a_torn_end_is_cut_off() -> None:
    """An incomplete last record is dropped, since it was never acknowledged."""
    disk = SimDisk("n1")
    filled(disk)
    disk.append(LOG, disk.read(LOG)[-30:-10])
    storage = started(disk)
    assert storage.last == 5
    assert storage.repairs_until == 0
    storage.append(entries(3))
    assert started(disk).last == 6


@pytest.mark.parametrize("cut", [1, 20, 60, 100, 10_000])
def test_a_log_that_lost_its_end_is_noticed(cut: int) -> None:
    """A node that has lost acknowledged entries repairs its log first, also after another restart."""
    disk = SimDisk("n1")
    filled(disk)
    disk.damage(Damaging(how=How.CUT, pattern=LOG, pick=0.0, amount=cut))
    storage = started(disk)
    assert storage.last < 5
    assert storage.repairs_until == 5
    assert started(disk).repairs_until == 5


def test_a_flipped_bit_is_noticed_wherever_it_is() -> None:
    """The node keeps the records before the damaged one; a leader must send the others again."""
    whole = SimDisk("n1")
    filled(whole)
    content = whole.read(LOG)
    for index in range(0, len(content), 3):
        disk = SimDisk("n1")
        filled(disk)
        disk.write(LOG, content[:index] + bytes([content[index] ^ 1 << index % 8]) + content[index + 1 :])
        storage = started(disk)
        assert storage.repairs_until == 5
        assert storage.after(0, 99) == entries(1, 1, 2, 2, 2)[: storage.last]


def test_the_log_of_an_earlier_time_is_noticed() -> None:
    """It is as long as the mark, but has an entry there that was replaced. The node trusts none of it after its snapshot."""
    disk = SimDisk("n1")
    storage = filled(disk)
    earlier = disk.read(LOG)
    storage.cut(5)
    storage.append(entries(3))
    disk.write(LOG, earlier)
    restarted = started(disk)
    assert (restarted.last, restarted.repairs_until) == (0, 5)
    restarted.append(entries(1, 1, 2, 2, 3))
    restarted.repaired()
    assert (started(disk).last, started(disk).repairs_until) == (5, 0)


def test_promises_of_an_earlier_time_are_noticed() -> None:
    """The other file has a newer version."""
    disk = SimDisk("n1")
    storage = filled(disk)
    earlier = disk.read("promises")
    storage.promise(7, "n3")
    disk.write("promises", earlier)
    restarted = started(disk)
    assert (restarted.term, restarted.vote) == (7, "n3")


def test_the_repair_ends_when_all_is_there_and_committed() -> None:
    """After the repair, a restart finds nothing missing."""
    disk = SimDisk("n1")
    filled(disk)
    disk.damage(Damaging(how=How.CUT, pattern=LOG, pick=0.0, amount=50))
    storage = started(disk)
    storage.append(entries(*[2] * (5 - storage.last)))
    assert started(disk).repairs_until == 0
    storage.repaired()
    assert storage.repairs_until == 0


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("left", [0, 3, 12])
def test_one_copy_of_the_promises_is_enough(name: str, left: int) -> None:
    """Term, vote and mark are written twice."""
    disk = SimDisk("n1")
    filled(disk)
    disk.truncate(name, left)
    storage = started(disk)
    assert (storage.term, storage.vote, storage.last, storage.repairs_until) == (2, "n3", 5, 0)


def test_without_its_promises_a_node_does_not_act() -> None:
    """The node does not start, since it may have voted for an unknown node."""
    disk = SimDisk("n1")
    filled(disk)
    for name in PROMISES:
        disk.truncate(name, 3)
    with pytest.raises(DamagedDiskError, match="promises"):
        started(disk)


def test_a_snapshot_cuts_the_log_behind_it() -> None:
    """The log keeps the entries after the snapshot's end, and some before it."""
    disk = SimDisk("n1")
    storage = filled(disk)
    storage.keep_snapshot(Snapshot(4, 2, b'"state"'), trailing=2)
    disk.lose_power()
    for loaded in (storage, started(disk)):
        assert (loaded.base, loaded.base_term, loaded.last) == (2, 1, 5)
        assert [loaded.term_at(index) for index in range(1, 6)] == [None, 1, 2, 2, 2]
        assert loaded.snapshot == Snapshot(4, 2, b'"state"')


@pytest.mark.parametrize("term", [2, 7])
def test_a_snapshot_of_another_history_drops_the_log(term: int) -> None:
    """Entries after the snapshot stay only if the log has the entry at its end."""
    disk = SimDisk("n1")
    storage = filled(disk)
    storage.keep_snapshot(Snapshot(4, term, b"{}"), trailing=0)
    for loaded in (storage, started(disk)):
        assert (loaded.base, loaded.base_term) == (4, term)
        assert loaded.last == (5 if term == 2 else 4)


def test_a_snapshot_that_is_damaged_is_a_log_without_beginning() -> None:
    """The node then has no state, and repairs up to its mark."""
    disk = SimDisk("n1")
    storage = filled(disk)
    storage.keep_snapshot(Snapshot(4, 2, b"{}"), trailing=0)
    disk.damage(Damaging(how=How.FLIP, pattern=SNAPSHOT, pick=0.0, amount=1, seed=3))
    restarted = started(disk)
    assert (restarted.base, restarted.last, restarted.snapshot, restarted.repairs_until) == (0, 0, None, 5)


def test_power_may_go_between_the_snapshot_and_the_cut() -> None:
    """The next start cuts old entries after a new snapshot."""
    disk = SimDisk("n1")
    filled(disk)
    log = disk.read(LOG)
    storage = started(disk)
    storage.keep_snapshot(Snapshot(9, 4, b"{}"), trailing=0)
    disk.write(LOG, log)
    restarted = started(disk)
    assert (restarted.base, restarted.base_term, restarted.last, restarted.repairs_until) == (9, 4, 9, 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_restart_finds_what_was_there(seed: int) -> None:
    """After random changes, each with a power loss, the logs in memory and on disk are equal."""
    random = Random(seed)
    disk = SimDisk("n1")
    storage = started(disk)
    term = 1
    for _ in range(60):
        kind, least = random.random(), storage.snapshot.index if storage.snapshot else 0
        if kind < 0.5:
            term += random.random() < 0.3
            storage.append(entries(*[term] * random.randint(1, 4)))
        elif kind < 0.65 and storage.last > least:
            storage.cut(random.randint(least + 1, storage.last))
        elif kind < 0.8 and storage.last > least:
            index = random.randint(least + 1, storage.last)
            snapshot = Snapshot(index, storage.term_at(index) or 0, b"[]")
            storage.keep_snapshot(snapshot, trailing=random.randint(0, 3))
        elif kind < 0.9:
            storage.promise(storage.term + 1, random.choice([None, "n2"]))
        disk.lose_power()
        restarted = started(disk)
        assert restarted.entries == storage.entries
        assert (restarted.base, restarted.base_term) == (storage.base, storage.base_term)
        assert (restarted.vote, restarted.snapshot) == (storage.vote, storage.snapshot)
        assert restarted.term == max(storage.term, storage.last_term)
        assert restarted.repairs_until == 0
        storage = restarted
