"""A handwritten schedule shows each bug of the simulated Raft; the correct version passes it.

A hunt meets such a schedule only by chance. These tests show that each bug is a real one, independently of hunts.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.disk import SimDisk
from clusters.systems.sim_raft.bugs import TABLE, Bug
from clusters.systems.sim_raft.messages import AskVote, Install, TimeoutNow, Vote
from clusters.systems.sim_raft.options import Reads
from clusters.systems.sim_raft.outcomes import REFUSED
from clusters.systems.sim_raft.tests.catches.raft_stage import NODES, Stage
from harness.units import NS_PER_MS
from harness.world import Failing
from tests.catches.schedules import Schedule, assert_each, assert_shows

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_MS = 1000  # longer than any election timeout


def led(bug: Bug, **options: Any) -> Stage:
    """Returns a stage where n1 leads the first term, and all have applied a first write. For the options, see `Stage`."""
    stage = Stage(bug, **options)
    assert stage.campaign("n1", *stage.names)
    stage.exchange(*stage.names)
    first = stage.write("n1", 1)
    stage.exchange(*stage.names)
    stage.beat("n1")
    stage.exchange(*stage.names)
    assert stage.acknowledged(first)
    return stage


def is_fresh(stage: Stage, read: int, written: int) -> bool:
    """Returns whether a read saw the earlier write, or has no answer."""
    return stage.answered(read) in {None, written} or not stage.acknowledged(read)


def early_read(bug: Bug) -> bool:
    """Two lagging followers refuse a leader's entries; this confirms its leadership before it knows the commit index."""
    stage = led(bug)
    written = stage.write("n1", 2)
    stage.exchange("n1", "n2", "n3")
    assert stage.acknowledged(written)
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n2", "n3", "n4", "n5")
    read = stage.read("n2")
    stage.exchange("n2", "n4")
    stage.exchange("n2", "n5")
    return is_fresh(stage, read, 2)


def lease_after_transfer(bug: Bug) -> bool:
    """After a transfer the old leader gets no message of the new one, and its lease is still valid."""
    stage = led(bug, reads=Reads.LEASE)
    stage.transfer("n1", "n2")
    stage.exchange("n1", "n2", kinds=(TimeoutNow,))
    stage.exchange("n2", "n3", "n4", kinds=(AskVote, Vote))
    assert stage.leads("n2")
    stage.exchange("n2", "n3", "n4")
    written = stage.write("n2", 2)
    stage.exchange("n2", "n3", "n4")
    assert stage.acknowledged(written)
    return is_fresh(stage, stage.read("n1"), 2)


def restarted_voter(bug: Bug) -> bool:
    """A voter confirms a lease, restarts, and votes for a node that misses the leader."""
    stage = led(bug, reads=Reads.LEASE)
    stage.wait(LONG_MS)
    stage.beat("n1")
    stage.exchange("n1", "n2", "n3")
    stage.lose()
    stage.restart("n3")
    if not stage.campaign("n4", "n3", "n5"):
        return True
    stage.exchange("n4", "n3", "n5")
    assert stage.acknowledged(stage.write("n4", 2)) is False
    stage.exchange("n4", "n3", "n5")
    return is_fresh(stage, stage.read("n1"), 2)


def two_leaders(stage: Stage) -> bool:
    """Two leaders of one term append different entries, and a follower takes both for the same."""
    stage.write("n2", 2)
    stage.exchange("n2", "n3", "n5")
    stage.write("n1", 3)
    stage.beat("n1")
    stage.exchange("n1", "n3", "n4")
    return stage.agree()


def second_vote(bug: Bug) -> bool:
    """A voter meets a second candidate of the same term; in between it is restarted."""
    stage = Stage(bug)
    stage.nodes["n2"].elections._campaign(pre=False)
    assert stage.campaign("n1", "n3", "n4")
    if bug is not Bug.TWO_VOTES_IN_A_TERM:
        stage.restart("n3")
    stage.exchange("n2", "n3", "n5", kinds=(AskVote, Vote))
    return True if not stage.leads("n2") else two_leaders(stage)


def promises_rolled_back(bug: Bug) -> bool:
    """A voter meets a second candidate of the same term; in between, one file of its promises is that of an earlier time."""
    stage = Stage(bug)
    stage.nodes["n2"].elections._campaign(pre=False)
    disk = stage.hosts["n3"].disk
    earlier = disk.read("promises")
    assert stage.campaign("n1", "n3", "n4")
    disk.write("promises", earlier)
    disk.sync("promises")
    stage.restart("n3")
    stage.exchange("n2", "n3", "n5", kinds=(AskVote, Vote))
    return True if not stage.leads("n2") else two_leaders(stage)


def late_vote(bug: Bug) -> bool:
    """Votes of a first election arrive in the candidate's second election, which another node has won."""
    stage = Stage(bug)
    stage.nodes["n1"].elections._campaign(pre=False)
    for voter in ("n3", "n4"):
        stage.deliver("n1", voter)
    late = [mail for mail in stage.mail if mail[1] == "n1"]
    stage.lose()
    stage.wait(LONG_MS)
    stage.nodes["n1"].elections._campaign(pre=False)
    stage.lose()
    stage.nodes["n2"].elections._campaign(pre=False)
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n2", "n3", "n4", "n5")
    stage.nodes["n1"].storage.term = 2
    stage.mail.extend(late)
    stage.exchange("n3", "n4", "n1", kinds=(Vote,))
    return True if not stage.leads("n1") else two_leaders(stage)


def longer_log(bug: Bug) -> bool:
    """An isolated leader with many entries of its own runs against nodes with later entries."""
    stage = led(bug)
    for value in range(10, 15):
        stage.write("n1", value)
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n2", "n3", "n4", "n5")
    written = stage.write("n2", 2)
    stage.exchange("n2", "n3", "n4", "n5")
    assert stage.acknowledged(written)
    stage.wait(LONG_MS)
    stage.nodes["n1"].storage.term = 2
    if not stage.campaign("n1", "n3", "n4"):
        return True
    stage.exchange("n1", "n3", "n4")
    stage.beat("n1")
    stage.exchange("n1", "n3", "n4")
    return is_fresh(stage, stage.read("n1"), 2) and stage.agree()


def figure_eight(bug: Bug) -> bool:
    """Figure 3.7 of the dissertation: a majority has an entry of an old term, and a later leader overwrites it."""
    stage = led(bug)
    stage.write("n1", 2)
    stage.exchange("n1", "n2")
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n5", "n3", "n4")
    stage.write("n5", 3)
    stage.lose()
    stage.wait(LONG_MS)
    stage.nodes["n1"].follow(2, None)
    assert stage.campaign("n1", "n2", "n3")
    for _ in range(2):  # n3 refuses, and then stores the entries of n1
        stage.deliver("n1", "n3")
        stage.deliver("n3", "n1")
    stage.deliver("n1", "n2")
    stage.deliver("n2", "n1")
    stage.lose()
    stage.wait(LONG_MS)
    stage.nodes["n5"].follow(3, None)
    if not stage.campaign("n5", "n3", "n4"):
        return True
    stage.exchange("n5", "n3", "n4")
    stage.write("n5", 4)
    stage.exchange("n5", "n3", "n4")
    return stage.agree()


def stale_match(bug: Bug) -> bool:
    """An earlier leader leads again, with outdated positions of a follower."""
    stage = led(bug)
    for value in range(10, 14):
        stage.write("n1", value)
    stage.exchange("n1", "n2")
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n3", "n4", "n5")
    stage.exchange("n3", "n4", "n5")
    stage.exchange(*NODES)
    stage.beat("n3")
    stage.exchange(*NODES)
    stage.wait(LONG_MS)
    assert stage.campaign("n1", "n2", "n3", "n4", "n5")
    written = stage.write("n1", 2)
    stage.exchange("n1", "n3")
    acknowledged = stage.acknowledged(written)
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n2", "n4", "n5")
    stage.exchange("n2", "n4", "n5")
    stage.beat("n2")
    read = stage.read("n2")
    stage.exchange("n2", "n4", "n5")
    return not acknowledged or is_fresh(stage, read, 2)


def cut_logs(bug: Bug) -> bool:
    """A new leader makes its followers drop their logs, and dies before it has sent its own."""
    stage = led(bug)
    for value in range(10, 14):
        stage.write("n1", value)
        stage.exchange(*NODES)
    stage.beat("n1")
    stage.exchange(*NODES)
    stage.wait(LONG_MS)
    assert stage.campaign("n2", *NODES)
    for follower in ("n3", "n4", "n5"):
        stage.deliver("n2", follower)
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n3", "n4", "n5")
    for value in range(20, 30):
        stage.write("n3", value)
        stage.exchange("n3", "n4", "n5")
    stage.restart("n1")
    stage.beat("n3")
    stage.exchange(*NODES)
    stage.beat("n3")
    stage.exchange(*NODES)
    return stage.agree()


def late_snapshot(bug: Bug) -> bool:
    """A snapshot is sent twice. The second one arrives when the follower has acknowledged later entries."""
    stage = led(bug, snapshot_entries=4)
    for value in range(10, 22):
        stage.write("n1", value)
        stage.exchange("n1", "n2", "n3")
    stage.lose()
    stage.beat("n1")
    if not isinstance(stage.mail[-1][2], Install):  # n5 refuses the first entries, and then gets a snapshot
        stage.deliver("n1", "n5")
        stage.deliver("n5", "n1")
        stage.beat("n1")
    late = stage.mail.pop()
    assert late[1] == "n5"
    assert isinstance(late[2], Install)
    stage.beat("n1")
    stage.exchange("n1", "n4", "n5")
    written = stage.write("n1", 2)
    stage.exchange("n1", "n4", "n5")
    assert stage.acknowledged(written)
    stage.lose()
    stage.mail.append(late)
    stage.exchange("n1", "n5")
    stage.lose()
    stage.wait(LONG_MS)
    if not stage.campaign("n2", "n3", "n5"):
        return True
    stage.exchange("n2", "n3", "n5")
    read = stage.read("n2")
    stage.exchange("n2", "n3", "n5")
    return is_fresh(stage, read, 2)


def kept_conflict(bug: Bug) -> bool:
    """An isolated leader has other entries at the end of the snapshot that it gets."""
    stage = led(bug, snapshot_entries=4)
    for value in range(10, 30):
        stage.write("n1", value)
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n2", "n3", "n4", "n5")
    for value in range(30, 40):
        stage.write("n2", value)
        stage.exchange("n2", "n3", "n4", "n5")
    stage.lose("n1")
    for _ in range(3):
        stage.beat("n2")
        stage.exchange(*NODES)
    return stage.agree() and len({node.commit for node in stage.nodes.values()}) == 1


def deposed(stage: Stage, value: int = 2) -> None:
    """n2 leads the next term without n1, and commits a write."""
    stage.lose()
    assert stage.campaign("n2", "n3", "n4", "n5")
    stage.exchange("n2", "n3", "n4", "n5")
    written = stage.write("n2", value)
    stage.exchange("n2", "n3", "n4", "n5")
    assert stage.acknowledged(written)


def old_leader_reads(bug: Bug) -> bool:
    """An isolated leader does not know its successor."""
    stage = led(bug)
    stage.wait(LONG_MS)
    deposed(stage)
    return is_fresh(stage, stage.read("n1"), 2)


def refusals_count(bug: Bug) -> bool:
    """The same, and it asks nodes in the next term."""
    stage = led(bug)
    stage.wait(LONG_MS)
    deposed(stage)
    stage.lose()
    read = stage.read("n1")
    stage.exchange("n1", "n3", "n4")
    return is_fresh(stage, read, 2)


def follower_reads(bug: Bug) -> bool:
    """A follower lags."""
    stage = led(bug)
    written = stage.write("n1", 2)
    stage.exchange("n1", "n2", "n3")
    assert stage.acknowledged(written)
    return is_fresh(stage, stage.read("n5"), 2)


def old_lease(bug: Bug) -> bool:
    """The voters' time for the lease is over; the leader still trusts it, or its clock was set back."""
    stage = led(bug, reads=Reads.LEASE)
    stage.hosts["n1"].ahead_ns = -5 * LONG_MS * NS_PER_MS if bug is Bug.LEASE_ON_WALL_CLOCK else 0
    stage.wait(LONG_MS)
    deposed(stage)
    return is_fresh(stage, stage.read("n1"), 2)


def doubled_vote(bug: Bug) -> bool:
    """The network doubles a vote, and the others elect another node."""
    stage = Stage(bug)
    stage.nodes["n1"].elections._campaign(pre=False)
    stage.deliver("n1", "n3")
    stage.mail.append(next(mail for mail in stage.mail if mail[0] == "n3"))
    stage.exchange("n3", "n1", kinds=(Vote,))
    stage.lose()
    stage.nodes["n2"].elections._campaign(pre=False)
    stage.exchange("n2", "n4", "n5", kinds=(AskVote, Vote))
    return True if not stage.leads("n1") else two_leaders(stage)


def replaced_by_one_that_lags(stage: Stage, *voters: str) -> bool:
    """Makes n4 a candidate. It lacks a write of 2 that n1, n2 and n3 have acknowledged."""
    stage.lose()
    stage.wait(LONG_MS)
    if not stage.campaign("n4", *voters):
        return True
    stage.exchange("n4", *voters)
    read = stage.read("n4")
    stage.exchange("n4", *voters)
    return is_fresh(stage, read, 2)


def written_by_three(bug: Bug, **options: Any) -> Stage:
    """Returns a stage where n1, n2 and n3 have a second, acknowledged write."""
    stage = led(bug, **options)
    written = stage.write("n1", 2)
    stage.exchange("n1", "n2", "n3")
    assert stage.acknowledged(written)
    return stage


def shorter_log(bug: Bug) -> bool:
    """A lagging node becomes a candidate."""
    return replaced_by_one_that_lags(written_by_three(bug), "n3", "n5")


def lost_write(bug: Bug) -> bool:
    """Two of the three nodes with a write restart, or lose power."""
    stage = written_by_three(bug)
    for name in ("n2", "n3"):
        stage.restart(name, power=bug is Bug.ACKNOWLEDGED_BEFORE_FSYNC)
    return replaced_by_one_that_lags(stage, "n2", "n3", "n5")


def damaged_log(bug: Bug) -> bool:
    """A disk loses the end of the log."""
    stage = written_by_three(bug)
    disk = stage.hosts["n3"].disk
    disk.truncate("log", len(disk.read("log")) - 4)
    disk.sync("log")
    stage.restart("n3")
    return replaced_by_one_that_lags(stage, "n3", "n5")


def flipped_bit(bug: Bug) -> bool:
    """A disk changes the value of an entry."""
    stage = written_by_three(bug)
    disk = stage.hosts["n3"].disk
    content = disk.read("log")
    position = content.rindex(b"2]")
    disk.write("log", content[:position] + b"3" + content[position + 1 :])
    disk.sync("log")
    stage.restart("n3")
    stage.beat("n1")
    stage.exchange(*NODES)
    stage.beat("n1")
    stage.exchange(*NODES)
    return stage.agree()


def failed_sync(bug: Bug) -> bool:
    """A disk fails to sync an entry once; after that, another entry is synced, and the node loses its power."""
    stage = written_by_three(bug)
    disk = stage.hosts["n3"].disk
    assert isinstance(disk, SimDisk)
    disk.fail(0, Failing(call="fsync", pattern="log", nth=1, times=1, error=errno.EIO))
    stage.write("n1", 7)
    with pytest.raises(OSError, match="an error of the simulated disk"):  # the process restarts itself then
        stage.exchange("n1", "n3")
    stage.restart("n3")
    stage.beat("n1")
    stage.exchange(*NODES)
    stage.write("n1", 8)
    stage.exchange(*NODES)
    mark = stage.nodes["n3"].storage.last
    disk.lose_power()
    stage.restart("n3")
    storage = stage.nodes["n3"].storage
    return (storage.last, storage.repairs_until) == (mark, 0)


def unready_successor(bug: Bug) -> bool:
    """A leader transfers its leadership to a lagging node."""
    stage = written_by_three(bug)
    stage.lose()
    stage.transfer("n1", "n4")
    stage.exchange("n1", "n4", kinds=(TimeoutNow,))
    stage.exchange("n4", "n2", "n5", kinds=(AskVote, Vote))
    if not stage.leads("n4"):
        return True
    stage.exchange("n4", "n2", "n5")
    read = stage.read("n4")
    stage.exchange("n4", "n2", "n5")
    return is_fresh(stage, read, 2)


def late_heartbeat(bug: Bug) -> bool:
    """A heartbeat arrives after entries that were sent later."""
    stage = led(bug)
    stage.beat("n1")
    late = [mail for mail in stage.mail if mail[1] in {"n2", "n3"}]
    stage.lose()
    written = stage.write("n1", 2)
    stage.beat("n1")
    stage.exchange("n1", "n2", "n3")
    assert stage.acknowledged(written)
    stage.mail.extend(late)
    stage.exchange("n1", "n2", "n3")
    return replaced_by_one_that_lags(stage, "n2", "n3", "n5")


def two_of(bug: Bug) -> bool:
    """Both halves, each with two nodes, continue."""
    names = NODES[:4] if bug is Bug.HALF_OF_EVEN_IS_MAJORITY else NODES
    stage = led(bug, names=names)
    written = stage.write("n1", 2)
    stage.exchange("n1", "n2")
    acknowledged = stage.acknowledged(written)
    stage.lose()
    stage.wait(LONG_MS)
    if not stage.campaign("n3", "n4"):
        return not acknowledged
    stage.exchange("n3", "n4")
    read = stage.read("n3")
    stage.exchange("n3", "n4")
    return is_fresh(stage, read, 2)


def conflicting(bug: Bug, **options: Any) -> Stage:
    """Returns a stage where n1 has two entries that conflict with those of n3, the leader of the third term."""
    stage = led(bug, **options)
    stage.write("n1", 10)
    stage.write("n1", 11)
    stage.wait(LONG_MS)
    deposed(stage)
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n3", "n4", "n5")
    stage.exchange("n3", "n4", "n5")
    stage.lose()
    stage.write("n3", 3)
    stage.exchange("n3", "n4", "n5")
    stage.nodes["n1"].follow(3, None)
    return stage


def conflict(bug: Bug) -> bool:
    """A follower has conflicting entries of an old term; one message at a time."""
    stage = conflicting(bug, batch=1)
    stage.lose("n2")
    stage.exchange("n1", "n3")
    for _ in range(3):
        stage.beat("n3")
        stage.exchange("n1", "n3", "n4", "n5")
    return stage.agree()


def obeyed(bug: Bug) -> bool:
    """A deposed leader continues, and followers of the next leader accept its entries."""
    stage = led(bug)
    stage.wait(LONG_MS)
    deposed(stage)
    stage.lose()
    late = stage.write("n1", 5)
    stage.exchange("n1", "n3", "n4")
    stage.lose()
    if not stage.acknowledged(late):
        return True
    read = stage.read("n2")
    stage.exchange("n2", "n3", "n5")
    return is_fresh(stage, read, 5)


def repeated(bug: Bug) -> bool:
    """A client repeats a write after another client's write."""
    stage = led(bug)
    again = stage.write("n1", 10)
    stage.exchange(*NODES)
    stage.write("n1", 2)
    stage.exchange(*NODES)
    stage.repeat("n1", again)
    stage.exchange(*NODES)
    read = stage.read("n1")
    stage.exchange(*NODES)
    return is_fresh(stage, read, 2)


def forgotten_sessions(bug: Bug) -> bool:
    """A follower has its state from a snapshot."""
    stage = led(bug, snapshot_entries=4)
    for value in range(10, 22):
        stage.write("n1", value)
        stage.exchange("n1", "n2", "n3")
    stage.lose()
    for _ in range(3):
        stage.beat("n1")
        stage.exchange(*NODES)
    return stage.agree()


def refused_and_done(bug: Bug) -> bool:
    """A leader is replaced by a node that has the entry which a client waits for."""
    stage = led(bug)
    written = stage.write("n1", 2)
    stage.exchange("n1", "n2")
    stage.lose()
    stage.wait(LONG_MS)
    assert stage.campaign("n2", "n3", "n4", "n5")
    stage.exchange(*NODES)
    read = stage.read("n2")
    stage.exchange(*NODES)
    answer = stage.answers.get(written)
    return stage.answered(read) != 2 or answer is None or answer.code not in REFUSED


_KEEPS_THE_RULES: dict[Bug, Callable[[Bug], bool]] = {
    Bug.READ_WITHOUT_QUORUM: old_leader_reads,
    Bug.FOLLOWER_READS: follower_reads,
    Bug.LEASE_TOO_LONG: old_lease,
    Bug.LEASE_ON_WALL_CLOCK: old_lease,
    Bug.VOTE_COUNTED_TWICE: doubled_vote,
    Bug.VOTE_FOR_SHORTER_LOG: shorter_log,
    Bug.HALF_IS_MAJORITY: two_of,
    Bug.HALF_OF_EVEN_IS_MAJORITY: two_of,
    Bug.HIGHER_TERM_IGNORED: refusals_count,
    Bug.PREVIOUS_TERM_NOT_CHECKED: conflict,
    Bug.OLD_LEADER_OBEYED: obeyed,
    Bug.STALE_APPEND_CUTS: late_heartbeat,
    Bug.COMMIT_PAST_MATCH: conflict,
    Bug.SNAPSHOT_WITHOUT_SESSIONS: forgotten_sessions,
    Bug.RETRY_APPLIED_TWICE: repeated,
    Bug.LOST_LEADERSHIP_IS_FAIL: refused_and_done,
    Bug.ACKNOWLEDGED_BEFORE_FSYNC: lost_write,
    Bug.LOG_END_NOT_RESTORED: lost_write,
    Bug.LOST_ENTRIES_NOT_NOTICED: damaged_log,
    Bug.CHECKSUM_NOT_VERIFIED: flipped_bit,
    Bug.OLDER_PROMISES_TRUSTED: promises_rolled_back,
    Bug.FAILED_SYNC_TRUSTED: failed_sync,
    Bug.TRANSFER_UNCHECKED: unready_successor,
    Bug.READ_BEFORE_OWN_ENTRY: early_read,
    Bug.LEASE_KEPT_IN_TRANSFER: lease_after_transfer,
    Bug.RESTARTED_VOTER_BREAKS_LEASE: restarted_voter,
    Bug.VOTE_NOT_PERSISTED: second_vote,
    Bug.TERM_NOT_PERSISTED: second_vote,
    Bug.TWO_VOTES_IN_A_TERM: second_vote,
    Bug.VOTE_OF_OLD_TERM: late_vote,
    Bug.VOTE_BY_LENGTH: longer_log,
    Bug.OLD_TERM_COMMITTED_BY_COUNT: figure_eight,
    Bug.MATCH_OF_OLD_TERM: stale_match,
    Bug.COMMITTED_ENTRIES_CUT: cut_logs,
    Bug.OLD_SNAPSHOT_INSTALLED: late_snapshot,
    Bug.SNAPSHOT_KEEPS_CONFLICT: kept_conflict,
}
SCHEDULES = {bug: Schedule(run, right=True, wrong=False) for bug, run in _KEEPS_THE_RULES.items()}


@pytest.mark.parametrize("bug", SCHEDULES)
def test_a_schedule_shows_the_bug(bug: Bug) -> None:
    """The same messages in the same order violate a rule with the bug, and none without it."""
    assert_shows(SCHEDULES, bug)


def test_each_bug_has_a_schedule() -> None:
    """Every bug has a schedule."""
    assert_each(SCHEDULES, Bug, TABLE)
