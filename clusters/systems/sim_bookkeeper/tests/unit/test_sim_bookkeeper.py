"""The simulated BookKeeper, message by message: the document's counterexample, fences, recovery, the metadata store, disks."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.sim.disk import SimDisk
from clusters.sim.explore.host import SearchHost
from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bookie import Bookie
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.layout import Layout, first_meta
from clusters.systems.sim_bookkeeper.messages import (
    Add,
    Answer,
    Append,
    Entry,
    Fence,
    MetaIs,
    Put,
    ReadNext,
    Refused,
)
from clusters.systems.sim_bookkeeper.metadata import MetadataStore
from clusters.systems.sim_bookkeeper.options import Protocol, SimBookkeeperOptions
from clusters.systems.sim_bookkeeper.tests.catches.bookkeeper_stage import KEY, NAMES, Stage, only_b1, read, without_b1
from harness.damage import Damaging, How
from harness.errors import InputError


def diverged(protocol: Protocol, **options: Any) -> Stage:
    """Returns a log with 1 on all bookies, and 2 at the next offset on b1 only. Then c2 is asked to append 3 without b1."""
    stage = Stage(protocol, **options)
    first = stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver()
    assert stage.answers[first] == Answer(outcomes.OK, 0)
    second = stage.ask("c1", Append(KEY, 2, takes_over=True))
    stage.deliver(without=only_b1)
    assert second not in stage.answers
    stage.ask("c2", Append(KEY, 3, takes_over=True))
    stage.deliver(without=without_b1)
    return stage


def test_terms_without_truncation_diverge() -> None:
    """The document's counterexample: c2 acknowledges 3 at offset 1, and b1 has 2 there."""
    stage = diverged(Protocol.TERMS, truncate=False, guarantee_write_quorum=False)
    assert stage.answers[3] == Answer(outcomes.OK, 1)
    assert read(stage, 1) == 2


def test_truncation_removes_what_the_recovery_did_not_find() -> None:
    """The takeover waits for b1, which deletes 2. Then 3 gets the next offset."""
    stage = diverged(Protocol.TERMS)
    assert 3 not in stage.answers
    stage.retry("c2")
    stage.deliver(without=lambda _, receiver, message: receiver == "b1" and isinstance(message, ReadNext))
    assert stage.answers[3] == Answer(outcomes.OK, 2)
    assert [read(stage, offset) for offset in range(3)] == [1, None, 3]
    first = stage.processes["b1"]
    assert isinstance(first, Bookie)
    assert first.entries[KEY, 0] == {0: Entry(1), 1: Entry(None, truncates=2), 2: Entry(3)}


@pytest.mark.parametrize(("cleans", "last_value"), [(True, 4), (False, 3)])
def test_a_bookie_that_comes_back_has_entries_of_an_old_writer(cleans: bool, last_value: int) -> None:
    """c1's entries 2 and 3 are on b1 only, and b4 replaces b1 in c2's recovery. c2's own entry 4 misses b4, so b1 replaces b4.

    It is acknowledged by b2 and b3. If b1 joins without deleting its entries, a read at b1 gives 3 in its place.
    """
    stage = Stage(Protocol.TERMS, bookies=4, ensemble=3, clean_new_bookies=cleans)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver()
    for value in (2, 3):
        stage.ask("c1", Append(KEY, value, takes_over=True))
    stage.deliver(without=only_b1)

    def to_b4(receiver: str, message: Any) -> bool:
        return receiver == "b4" and isinstance(message, Add) and message.entry.value == 4

    number = stage.take_over("c2", 4, without=lambda sender, to, sent: without_b1(sender, to, sent) or to_b4(to, sent))
    assert stage.answers[number] == Answer(outcomes.OK, 2)
    for _ in range(3):
        stage.retry("c2")
        stage.deliver(without=lambda _, to, sent: to_b4(to, sent) or (to == "b1" and isinstance(sent, Add)))
    assert [fragment.bookies[0] for fragment in stage.log("c2").meta.segments[0].fragments] == ["b4", "b1"]
    assert read(stage, 2) == last_value


@pytest.mark.parametrize(("protocol", "offset"), [(Protocol.LEDGERS, 1000), (Protocol.TERM_IDS, 1)])
def test_other_ids_need_no_truncation(protocol: Protocol, offset: int) -> None:
    """The entry 2 has an id that nobody reads: its ledger is closed before it, or its term has ended."""
    stage = diverged(protocol)
    assert stage.answers[3] == Answer(outcomes.OK, offset)
    assert read(stage, offset) == 3
    assert read(stage, 0) == 1
    if protocol is Protocol.LEDGERS:
        assert read(stage, 1) is None


@pytest.mark.parametrize("protocol", Protocol)
def test_a_recovery_finds_what_one_bookie_has(protocol: Protocol) -> None:
    """If b1 answers, 2 is recovered, and the old writer cannot write any more."""
    stage = Stage(protocol)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver(without=only_b1)
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver(without=lambda sender, receiver, _: "b3" in {sender, receiver})
    if 2 not in stage.answers:  # with terms, the recovery waits for b3
        stage.retry("c2")
        stage.deliver()
    assert read(stage, 0) == 1
    assert stage.answers[2].code == outcomes.OK
    stage.retry("c1")
    stage.deliver()
    assert stage.answers[1].code == outcomes.FENCED
    late = stage.ask("c1", Append(KEY, 4, takes_over=False))
    assert stage.answers[late].code == outcomes.NOT_WRITER


def bookie(protocol: Protocol, disk: SimDisk, bug: Bug = Bug.NONE) -> tuple[Bookie, SearchHost]:
    """Returns a bookie that starts on a disk, and its host."""
    host = SearchHost("b1", NAMES, disk, 0)
    process = Bookie(host, SimBookkeeperOptions(protocol=protocol, bug=bug))
    process.start()
    return process, host


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize("bug", [Bug.NONE, Bug.FENCE_NOT_JOURNALLED])
def test_a_fence_outlives_a_power_loss(protocol: Protocol, bug: Bug) -> None:
    """A restarted bookie refuses the old writer, unless it has not journalled the fence."""
    disk = SimDisk("b1")
    process, _ = bookie(protocol, disk, bug)
    add = Add(KEY, 1, 0, 0, Entry(1), -1, recovery=False)
    process.receive("c1", add)
    process.receive("c2", Fence(KEY, 2, 0))
    disk.lose_power()
    process, host = bookie(protocol, disk, bug)
    assert process.entries[KEY, 0] == {0: Entry(1)}
    process.receive("c1", add._replace(offset=1))
    assert host.sent == [("c1", Refused(KEY, 1) if bug is Bug.NONE else messages.Added(KEY, 1, 1))]


def test_a_late_copy_does_not_truncate_again() -> None:
    """The entry that ended the recovery arrives twice, the second time after a later entry."""
    for bug, left in ((Bug.NONE, [0, 1]), (Bug.TRUNCATES_AGAIN, [0])):
        process, _ = bookie(Protocol.TERMS, SimDisk("b1"), bug)
        end = Add(KEY, 2, 0, 0, Entry(None, truncates=2), -1, recovery=True)
        process.receive("c2", end)
        process.receive("c2", Add(KEY, 2, 0, 1, Entry(3), 0, recovery=False))
        process.receive("c2", end)
        assert sorted(process.entries[KEY, 0]) == left


def test_a_damaged_entry_is_neither_there_nor_absent() -> None:
    """The bookie does not answer a recovery about it. The entry's next copy repairs it."""
    disk = SimDisk("b1")
    process, _ = bookie(Protocol.LEDGERS, disk)
    add = Add(KEY, 1, 0, 0, Entry(1), -1, recovery=True)
    process.receive("c1", add)
    disk.damage(Damaging(how=How.FLIP, pattern="entry-*", pick=0.0, amount=1, seed=1))
    process, host = bookie(Protocol.LEDGERS, disk)
    ask = messages.ReadNext(KEY, 2, 0, 0, fences=True)
    process.receive("c2", ask)
    assert host.take()[0] == []
    process.receive("c2", add)
    process.receive("c2", ask)
    assert host.take()[0][-1] == ("c2", messages.NextRead(KEY, 2, 0, Entry(1)))


@pytest.mark.parametrize("bug", [Bug.NONE, Bug.CAS_LEFT_OUT])
def test_the_metadata_change_by_compare_and_set(bug: Bug) -> None:
    """The second change from one version gets the metadata of the first. They outlive a power loss."""
    options = SimBookkeeperOptions(bug=bug)
    first = first_meta(Layout.of(NAMES, 2), options.protocol)
    disk = SimDisk("md")
    host = SearchHost("md", NAMES, disk, 0)
    store = MetadataStore(host, options, first)
    store.start()
    mine, other = first._replace(version=2, term=2, owner="c1"), first._replace(version=2, term=2, owner="c2")
    store.receive("c1", Put(KEY, mine))
    store.receive("c2", Put(KEY, other))
    last = mine if bug is Bug.NONE else other
    assert host.sent == [("c1", MetaIs(KEY, 0, mine)), ("c2", MetaIs(KEY, 0, last))]
    disk.lose_power()
    again = MetadataStore(host, options, first)
    again.start()
    assert again.meta(KEY) == last


def test_too_few_nodes_are_refused() -> None:
    """The error says how many there must be."""
    with pytest.raises(InputError, match=r"needs 6 nodes or more.*found 5; choose --nodes 6"):
        Layout.of(NAMES[1:], 2)
