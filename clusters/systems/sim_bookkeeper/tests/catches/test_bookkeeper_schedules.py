"""Each planted bug of the simulated BookKeeper by a schedule: the test delivers the messages, and the bug has another end.

Each schedule returns what it sees at the end. The correct version ends in one way, and the bug in another.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import Any

import pytest

from clusters.sim.host import DiskError
from clusters.systems.sim_bookkeeper import outcomes
from clusters.systems.sim_bookkeeper.bookie import Bookie
from clusters.systems.sim_bookkeeper.bugs import TABLE, Bug
from clusters.systems.sim_bookkeeper.ledger_messages import LedgerRequest
from clusters.systems.sim_bookkeeper.messages import (
    Add,
    Added,
    Append,
    Entry,
    Fence,
    Fenced,
    NextRead,
    Put,
    Query,
    ReadNext,
)
from clusters.systems.sim_bookkeeper.options import Protocol
from clusters.systems.sim_bookkeeper.tests.catches.bookkeeper_stage import KEY, Stage, only_b1, read, without_b1
from harness.world import Failing
from tests.catches.schedules import Schedule, assert_each, assert_shows


def late_adds(bug: Bug, protocol: Protocol = Protocol.LEDGERS) -> Any:
    """c1's first adds arrive after c2's takeover. Returns what c1 tells its client."""
    stage = Stage(protocol, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    late, stage.waiting = stage.waiting, []
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver()
    stage.waiting = late
    stage.deliver()
    return stage.answers[1].code


def late_add_beside_the_fences(bug: Bug) -> Any:
    """b1 has c1's entry. b1 and b2 are fenced, b2 and b3 are read, and then the entry reaches b3. Returns what c1 tells."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    to_b1, _, to_b3 = stage.waiting
    stage.waiting = [to_b1]
    stage.deliver()
    stage.ask("c2", Append(KEY, 2, takes_over=True))

    def lost(_: str, receiver: str, message: Any) -> bool:
        return (isinstance(message, Fence) and receiver == "b3") or (isinstance(message, ReadNext) and receiver == "b1")

    stage.deliver(without=lost)
    assert stage.answers[2].code == outcomes.OK
    stage.waiting = [to_b3]
    stage.deliver()
    return stage.answers[1].code


def restart_after_a_fence(bug: Bug) -> Any:
    """All bookies restart after c2's takeover, and then c1 repeats its adds. Returns what c1 tells its client."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver(without=lambda _, receiver, message: isinstance(message, Add))
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver()
    for name in stage.layout.bookies:
        stage.start(name)
    stage.retry("c1")
    stage.deliver()
    return stage.answers[1].code


def two_claims(bug: Bug) -> Any:
    """Both client nodes claim the same term of the same metadata. Returns the terms of those that are in a takeover."""
    stage = Stage(Protocol.TERMS, bug=bug)
    stage.start("c1")  # it is no longer the writer
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver(without=lambda _, receiver, message: isinstance(message, Fence))
    takeovers = (stage.log("c1").takeover, stage.log("c2").takeover)
    return [takeover.term for takeover in takeovers if takeover is not None]


def power_loss(bug: Bug) -> Any:
    """All bookies lose power after an acknowledged append. Returns what b1 has."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver()
    assert stage.answers[1].code == outcomes.OK
    stage.disks["b1"].lose_power()
    stage.start("b1")
    bookie = stage.processes["b1"]
    assert isinstance(bookie, Bookie)
    return dict(bookie.entries)


def failed_sync(bug: Bug) -> Any:
    """The sync of an entry fails on b1. Returns which bookies acknowledge the entry."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.disks["b1"].fail(1, Failing(call="fsync", pattern="entry-*", nth=1, times=1, error=errno.EIO))
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    with suppress(DiskError):
        stage.deliver(without=lambda _, receiver, __: receiver in {"b2", "b3"})
    writer = stage.log("c1").writer
    assert writer is not None
    return writer.pending[0].acks


def first_entry_lost(bug: Bug) -> Any:
    """No bookie gets the first entry. Returns whether the second one is acknowledged."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.waiting = []
    stage.ask("c1", Append(KEY, 2, takes_over=True))
    stage.deliver()
    return 2 in stage.answers


def one_absence(bug: Bug) -> Any:
    """b1 and b2 have an acknowledged entry, and only b3 answers the recovery. Returns whether c2 takes over."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver(without=lambda _, receiver, message: receiver == "b3")
    assert stage.answers[1].code == outcomes.OK
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver(without=lambda sender, _, message: isinstance(message, NextRead) and sender != "b3")
    return 2 in stage.answers


def recovered(bug: Bug) -> Any:
    """Only b1 has the entry that c2 recovers. Returns how many bookies have it afterwards."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver(without=only_b1)
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver(without=lambda sender, _, message: isinstance(message, Fenced) and sender == "b3")
    bookies = [stage.processes[name] for name in stage.layout.bookies]
    return sum(0 in bookie.entries.get((KEY, 0), {}) for bookie in bookies if isinstance(bookie, Bookie))


def ends_of_a_recovery(bug: Bug) -> Any:
    """A bookie has three entries of an old writer. It gets the end of a recovery, a later entry, and the end again."""
    stage = Stage(Protocol.TERMS, bug=bug)
    bookie = stage.processes["b1"]
    assert isinstance(bookie, Bookie)
    for offset in range(3):
        bookie.receive("c1", Add(KEY, 1, 0, offset, Entry(offset), -1, recovery=False))
    end = Add(KEY, 2, 0, 0, Entry(None, truncates=2), -1, recovery=True)
    bookie.receive("c2", end)
    bookie.receive("c2", Add(KEY, 2, 0, 1, Entry(9), 0, recovery=False))
    bookie.receive("c2", end)
    return sorted(bookie.entries[KEY, 0])


def fenced_append(bug: Bug) -> Any:
    """c1's entry is recovered from b1, and then c1 learns that it is fenced. Returns what c1 tells its client."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver(without=only_b1)
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver()
    assert read(stage, 0) == 1
    stage.retry("c1")
    stage.deliver()
    return stage.answers[1].code


def unconfirmed(bug: Bug) -> Any:
    """Only b1 has an entry. Returns what a read of it returns."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver(without=only_b1)
    return read(stage, 0, at="c1")


def deposed_reader(bug: Bug) -> Any:
    """c2 has taken over, and c1 does not know it. Returns what c1 answers to a read."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver()
    stage.ask("c2", Append(KEY, 2, takes_over=True))
    stage.deliver()
    number = stage.ask("c1", Query(KEY, 1000, 1000, single=True, takes_over=False))
    stage.deliver()
    return stage.answers[number].code


def answer_of_a_replaced_bookie(bug: Bug) -> Any:
    """b1 has c1's entry, and does not answer. b4 replaces it, and b2 answers. Then comes the answer of b1.

    Returns whether c1 tells its client, and what c2 reads after a recovery that hears all bookies but b2.
    """
    stage = Stage(Protocol.LEDGERS, bookies=4, ensemble=3, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.retry("c1", 2)
    stage.deliver(without=lambda sender, receiver, message: "b3" in {sender, receiver} or "b4" in {sender, receiver})
    stage.processes["c1"].receive("b1", Added(KEY, 1, 0))
    stage._take("c1")
    told = 1 in stage.answers
    stage.take_over("c2", 2, without=lambda sender, _, message: sender == "b2" and isinstance(message, NextRead))
    return told, read(stage, 0)


def half_recovery(bug: Bug) -> Any:
    """b1 and b2 have two acknowledged entries. c2 recovers the first one with b4 in place of b1, and stops.

    Returns what c1 reads at the second offset after its own recovery, which hears all bookies but b2.
    """
    stage = Stage(Protocol.TERMS, bookies=4, ensemble=3, bug=bug)
    for value in (1, 2):
        stage.ask("c1", Append(KEY, value, takes_over=True))
    stage.deliver(without=lambda sender, receiver, _: "b3" in {sender, receiver})
    assert [stage.answers[number].code for number in (1, 2)] == [outcomes.OK, outcomes.OK]
    stage.ask("c2", Append(KEY, 3, takes_over=True))
    stage.deliver(without=lambda _, receiver, message: receiver == "b1" and isinstance(message, Add))
    stage.retry("c2", 2)
    stage.deliver(without=lambda sender, receiver, _: bool({"b1", "b2"} & {sender, receiver}))
    stage.start("c1")
    stage.take_over("c1", 4, without=lambda sender, _, message: sender == "b2" and isinstance(message, NextRead))
    return read(stage, 1, at="c1")


def pinned_bookie(bug: Bug) -> Any:
    """b1 and b2 have c1's first entry, b2 and b3 its second one; both are acknowledged. Then b1 and b3 do not answer.

    Returns what c2 reads at the first offset after a recovery that hears all bookies but b2.
    """
    stage = Stage(Protocol.TERMS, bookies=4, ensemble=3, bug=bug)
    for value in (1, 2):
        stage.ask("c1", Append(KEY, value, takes_over=True))
    lacking = {(0, "b3"), (1, "b1")}
    stage.deliver(without=lambda _, to, message: isinstance(message, Add) and (message.offset, to) in lacking)
    assert [stage.answers[number].code for number in (1, 2)] == [outcomes.OK, outcomes.OK]
    stage.retry("c1", 2)
    stage.deliver(without=lambda _, receiver, message: isinstance(message, Add))
    stage.take_over("c2", 3, without=lambda sender, _, message: sender == "b2" and isinstance(message, NextRead))
    return read(stage, 0)


def refused_writer(bug: Bug) -> Any:
    """c2 has taken over, and c1 does not know it. Returns what c1 tells the client of its next append."""
    stage = Stage(Protocol.TERMS, bookies=5, ensemble=3, bug=bug)
    stage.ask("c2", Append(KEY, 1, takes_over=True))
    stage.deliver()
    number = stage.ask("c1", Append(KEY, 2, takes_over=True))
    stage.deliver()
    return stage.answers[number].code


def repeated_append(bug: Bug) -> Any:
    """c1's first entry reaches b1 only, and is sent again in vain. Returns the entry that the next one is, by its answer."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", Append(KEY, 1, takes_over=True))
    stage.deliver(without=only_b1)
    stage.retry("c1")
    stage.waiting = []
    number = stage.ask("c1", Append(KEY, 2, takes_over=True))
    stage.retry("c1")
    stage.deliver()
    return stage.answers[number].value


def repeated_entry(bug: Bug) -> Any:
    """The second entry is sent before the first is confirmed, and again after that. Returns the last add confirmed."""
    stage = Stage(Protocol.LEDGERS, bug=bug)
    for value in (1, 2):
        stage.ask("c1", Append(KEY, value, takes_over=True))
    stage.deliver(without=lambda _, to, message: isinstance(message, Add) and message.offset == 1 and to != "b1")
    stage.retry("c1")
    writer = stage.log("c1").writer
    assert writer is not None
    return writer.lac


def two_recoveries(bug: Bug) -> Any:
    """b1 alone has two entries that are not acknowledged. c1 recovers the ledger without b1, and c2 with it.

    c2 writes both entries again before c1 closes the ledger. Returns what a reader takes for confirmed then, and c1's end.
    """
    stage = Stage(Protocol.LEDGERS, bug=bug)
    stage.ask("c1", LedgerRequest(KEY, "append", 1))
    stage.deliver()
    for value in (2, 3):
        stage.ask("c1", LedgerRequest(KEY, "append", value))
    stage.deliver(without=only_b1)
    stage.start("c1")

    def closes(message: Any) -> bool:
        return isinstance(message, Put) and message.meta.segments[-1].last is not None

    end = stage.ask("c1", LedgerRequest(KEY, "recover"))
    stage.deliver(without=lambda *mail: without_b1(*mail) or closes(mail[2]))
    stage.ask("c2", LedgerRequest(KEY, "recover"))
    stage.deliver(without=lambda _, __, message: closes(message))
    told = stage.ask("c2", LedgerRequest(KEY, "confirmed"))
    stage.deliver()
    stage.retry("c1")
    stage.deliver()
    return stage.answers[told].value, stage.answers[end].value


SCHEDULES: dict[Bug, Schedule] = {
    Bug.CAS_LEFT_OUT: Schedule(two_claims, [2, 3], [2, 2]),
    Bug.RECOVERY_READS_DO_NOT_FENCE: Schedule(late_add_beside_the_fences, outcomes.FENCED, outcomes.OK),
    Bug.UNKNOWN_LEDGER_NOT_FENCED: Schedule(late_adds, outcomes.FENCED, outcomes.OK),
    Bug.FENCE_NOT_JOURNALLED: Schedule(restart_after_a_fence, outcomes.FENCED, outcomes.OK),
    Bug.ADDS_NOT_FENCED: Schedule(late_adds, outcomes.FENCED, outcomes.OK),
    Bug.ACKNOWLEDGED_BEFORE_SYNC: Schedule(power_loss, {(KEY, 0): {0: Entry(1)}}, {}),
    Bug.FAILED_SYNC_TRUSTED: Schedule(failed_sync, set(), {"b1"}),
    Bug.ACKNOWLEDGED_OUT_OF_ORDER: Schedule(first_entry_lost, right=False, wrong=True),
    Bug.ONE_ABSENCE_ENDS_RECOVERY: Schedule(one_absence, right=False, wrong=True),
    Bug.RECOVERED_NOT_WRITTEN_BACK: Schedule(recovered, 3, 1),
    Bug.TRUNCATE_KEEPS_LATER: Schedule(ends_of_a_recovery, [0, 1], [0, 1, 2]),
    Bug.TRUNCATES_AGAIN: Schedule(ends_of_a_recovery, [0, 1], [0]),
    Bug.FENCED_IS_FAIL: Schedule(fenced_append, outcomes.FENCED, outcomes.NOT_WRITER),
    Bug.UNCONFIRMED_READS: Schedule(unconfirmed, None, 1),
    Bug.READS_WITHOUT_ASKING: Schedule(deposed_reader, outcomes.NOT_WRITER, outcomes.OK),
    Bug.ANSWERS_OF_REPLACED_COUNT: Schedule(answer_of_a_replaced_bookie, (False, None), (True, None)),
    Bug.METADATA_CHANGED_IN_RECOVERY: Schedule(half_recovery, 2, None),
    Bug.PINNED_ARE_REPLACED: Schedule(pinned_bookie, 1, None),
    Bug.REFUSED_IS_TIMEOUT: Schedule(refused_writer, outcomes.FENCED, outcomes.OK),
    Bug.ID_GIVEN_AGAIN: Schedule(repeated_append, 1, 0),
    Bug.CONFIRMED_GOES_BACK: Schedule(repeated_entry, 0, -1),
    Bug.RECOVERIES_CONFIRM: Schedule(two_recoveries, (0, 0), (1, 0)),
}


@pytest.mark.parametrize("bug", TABLE)
def test_a_bug_has_another_end(bug: Bug) -> None:
    """The correct version and the bug differ in what the schedule sees."""
    assert_shows(SCHEDULES, bug)


def test_each_bug_has_a_schedule() -> None:
    """Every bug has a schedule and a description."""
    assert_each(SCHEDULES, Bug, TABLE)
