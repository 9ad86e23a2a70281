"""Each planted bug of the simulated store by a schedule: the test sends the messages, and the bug has another end.

Each schedule returns what it sees at the end. The correct version ends in one way, and the bug in another.
"""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.disk import SimDisk
from clusters.sim.errors import Broken
from clusters.sim.host import DiskError, Reply, Request
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import TABLE, Bug
from clusters.systems.sim_txn.client import SimTxnTransactions
from clusters.systems.sim_txn.messages import Answer, Append, Commit, ReadOnly, Record, Step
from clusters.systems.sim_txn.node import StoreNode
from clusters.systems.sim_txn.options import Isolation, SimTxnOptions
from harness.node import Node
from harness.op import Info, Invocation, Ok
from harness.world import Failing
from tests.catches.schedules import Schedule, assert_each, assert_shows

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.host import Disk
    from harness.op import Value


class Timer:
    """An action that waits."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.waits = True

    def cancel(self) -> None:
        """Drops the action."""
        self.waits = False


class Machine:
    """A `clusters.sim.host.Host` whose messages and timers stay with the test."""

    def __init__(self, name: str = "n1", peers: tuple[str, ...] = ("n1",)) -> None:
        self.name = name
        self.peers = peers
        self.random = Random(1)
        self.files = SimDisk(name)
        self.disk: Disk = self.files
        self.sent: list[tuple[str, Any]] = []
        self.timers: list[Timer] = []

    def wall_ns(self) -> int:
        """Returns 0."""
        return 0

    monotonic_ns = wall_ns

    def after(self, delay_ns: int, action: Callable[[], None]) -> Timer:
        """Keeps an action."""
        assert delay_ns >= 0
        self.timers.append(Timer(action))
        return self.timers[-1]

    def send(self, to: str, message: Any) -> None:
        """Keeps a message."""
        self.sent.append((to, message))

    def log(self, text: str) -> None:
        """Drops a line."""

    def fire(self) -> None:
        """Runs the actions that wait now."""
        due, self.timers = self.timers, []
        for timer in due:
            if timer.waits:
                timer.action()

    def answer(self) -> Answer:
        """Returns the only answer to a client, and drops all messages."""
        replies = [message for _, message in self.sent if isinstance(message, Reply)]
        self.sent.clear()
        if not replies:
            return Answer(outcomes.NO_ANSWER)
        [reply] = replies
        answer: Answer = reply.body
        return answer


class Clients:
    """What the clients of one node, or of several, know."""

    def __init__(self) -> None:
        self.epochs: dict[str, int] = {}
        self.steps: dict[str, int] = {}

    def next_step(self, txn: str, function: str, key: str, value: Value) -> Step:
        """Returns the next micro-operation of a transaction."""
        return Step(txn, self.epochs.get(txn), self.steps.get(txn, 0), (function, key, value))

    def done(self, txn: str, answer: Answer) -> Value:
        """Takes the answer to it, and returns its result."""
        assert answer.code == outcomes.OK
        assert answer.epoch is not None
        self.steps[txn], self.epochs[txn] = self.steps.get(txn, 0) + 1, answer.epoch
        return answer.value

    def end(self, txn: str) -> Commit:
        """Returns the commit of a transaction."""
        return Commit(txn, self.epochs[txn], self.steps[txn])


class Stage:
    """A node alone, which leads."""

    def __init__(self, bug: Bug, isolation: Isolation = Isolation.SERIALIZABLE) -> None:
        self.options = SimTxnOptions(bug=bug, isolation=isolation)
        self.machine = Machine()
        self.clients = Clients()
        self.start()

    def start(self) -> None:
        """Starts the process, again after a kill, and lets it be elected."""
        self.machine.timers.clear()
        self.node = StoreNode(self.machine, self.options)
        self.node.start()
        self.machine.fire()

    def ask(self, body: Any) -> Answer:
        """Returns the answer to a request."""
        self.machine.sent.clear()
        self.node.receive("client", Request(1, body))
        return self.machine.answer()

    def step(self, txn: str, function: str, key: str, value: Value = None) -> Value:
        """Carries out the next micro-operation of a transaction; returns its result."""
        return self.clients.done(txn, self.ask(self.clients.next_step(txn, function, key, value)))

    def commit(self, txn: str) -> str:
        """Commits a transaction; returns the code of the answer."""
        return self.ask(self.clients.end(txn)).code

    def run(self, txn: str, *mops: tuple[str, str, Value]) -> str:
        """Carries out a transaction at once."""
        for mop in mops:
            self.step(txn, *mop)
        return self.commit(txn)

    def value(self, key: str) -> Value:
        """Returns what a new transaction reads of a key."""
        return self.step(f"look-{len(self.clients.steps)}", "r", key)


class _Lossy:
    """A connection on which the answer to the first commit is lost."""

    name = "c"

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.lost = 0

    async def ask(self, node: str, body: object, timeout_s: float | None) -> object:
        """Asks the node of the stage."""
        assert node
        assert timeout_s
        answer = self._stage.ask(body)
        if isinstance(body, Commit) and self.lost < 1:
            self.lost += 1
            raise Broken
        return answer


def lost_answer(bug: Bug) -> Any:
    """The answer to a commit is lost, and the client gives up. Returns the outcome's type and the list."""
    stage = Stage(bug)
    options = SimTxnOptions(bug=bug, commit_attempts=1)
    node = Node(name="n1", address="")
    client = SimTxnTransactions(connection=_Lossy(stage), node=node, nodes=["n1"], first=0, options=options)
    outcome = asyncio.run(client.invoke(Invocation("txn", [["append", "x", 1]], None)))
    return type(outcome), stage.value("x")


def commit_again(bug: Bug) -> Any:
    """A commit comes twice, with another one in between. Returns the list."""
    stage = Stage(bug)
    stage.run("t1", ("append", "x", 1))
    stage.run("t2", ("append", "x", 2))
    assert stage.commit("t1") == outcomes.OK
    return stage.value("x")


def read_after_a_commit(bug: Bug) -> Any:
    """A transaction begins right after a commit. Returns what it reads."""
    stage = Stage(bug)
    stage.run("t1", ("append", "x", 1))
    return stage.step("t2", "r", "x")


def two_reads(bug: Bug) -> Any:
    """A commit comes between two reads of a transaction. Returns what it reads."""
    stage = Stage(bug)
    first = stage.step("t1", "r", "x")
    stage.run("t2", ("append", "x", 1), ("append", "y", 2))
    return first, stage.step("t1", "r", "y")


def own_write(bug: Bug) -> Any:
    """A transaction reads what it appended. Returns it."""
    stage = Stage(bug)
    stage.step("t1", "append", "x", 1)
    return stage.step("t1", "r", "x")


def skew_of_absent_keys(bug: Bug) -> Any:
    """Two transactions each read an absent key, and write the key of the other. Returns the second one's answer."""
    stage = Stage(bug)
    stage.step("t1", "r", "x")
    stage.step("t2", "r", "y")
    stage.run("t1", ("append", "y", 1))
    return stage.run("t2", ("append", "x", 2))


def skew_of_late_reads(bug: Bug) -> Any:
    """The same, with keys that exist, and writes before the reads."""
    stage = Stage(bug)
    stage.run("t0", ("append", "x", 8), ("append", "y", 9))
    stage.step("t1", "append", "y", 1)
    stage.step("t2", "append", "x", 2)
    stage.run("t1", ("r", "x", None))
    return stage.run("t2", ("r", "y", None))


def blind_appends(bug: Bug) -> Any:
    """Two transactions append to one key. Returns the second one's answer, and the list."""
    stage = Stage(bug)
    stage.step("t1", "append", "x", 1)
    stage.step("t2", "append", "x", 2)
    stage.commit("t1")
    return stage.commit("t2"), stage.value("x")


def conflict_at_the_second_key(bug: Bug) -> Any:
    """A transaction meets a conflict at its second key. Returns the list of its first key."""
    stage = Stage(bug)
    stage.step("t1", "append", "x", 1)
    stage.step("t1", "append", "y", 1)
    stage.run("t2", ("append", "y", 2))
    assert stage.commit("t1") == outcomes.CONFLICT
    return stage.value("x")


def kill_in_a_commit(bug: Bug) -> Any:
    """The node is killed right after a commit of two keys. Returns both lists after the restart."""
    stage = Stage(bug)
    stage.run("t1", ("append", "x", 1), ("append", "y", 1))
    stage.start()
    return stage.value("x"), stage.value("y")


def power_loss(bug: Bug) -> Any:
    """The node loses its power after an answered commit. Returns the list."""
    stage = Stage(bug)
    assert stage.run("t1", ("append", "x", 1)) == outcomes.OK
    stage.machine.files.lose_power()
    stage.start()
    return stage.value("x")


def failed_syncs(bug: Bug) -> Any:
    """The syncs of a commit and of its copy fail, and the node loses its power. Returns the answers to the commit."""
    stage = Stage(bug)
    stage.step("t1", "append", "x", 1)
    stage.machine.files.fail(1, Failing(call="fsync", pattern="commit-*", nth=1, times=2, error=errno.EIO))
    answers = []
    with suppress(DiskError):
        answers.append(stage.commit("t1"))
    stage.machine.files.mend(1)
    stage.machine.files.lose_power()
    stage.start()
    assert stage.value("x") is None
    return answers


def reads_of_a_replica(bug: Bug) -> Any:
    """A node gets two commits at once. Returns its states that the leader did not have."""
    machine = Machine("n1", ("n1", "n2"))
    node = StoreNode(machine, SimTxnOptions(bug=bug))
    node.start()
    machine.timers.clear()
    records = (Record("t1", (("x", [1]),), 1), Record("t2", (("y", [2]),), 1))
    node.receive("n2", Append(1, (0, 0), records, 2, 1))
    seen = []
    for timer in [Timer(lambda: None), *reversed(machine.timers[1:])]:
        timer.action()
        machine.sent.clear()
        node.receive("client", Request(1, ReadOnly(("x", "y"))))
        seen.append(machine.answer().value)
    return [view for view in seen if view not in ([None, None], [[1], None], [[1], [2]])]


class Group:
    """Three nodes. The test chooses who is cut off, and who asks for votes."""

    def __init__(self, bug: Bug) -> None:
        names = ("n1", "n2", "n3")
        self.machines = {name: Machine(name, names) for name in names}
        self.nodes = {name: StoreNode(machine, SimTxnOptions(bug=bug)) for name, machine in self.machines.items()}
        self.clients = Clients()
        self.alone: str | None = None
        for node in self.nodes.values():
            node.start()

    def elect(self, name: str) -> None:
        """A node waits too long for a leader, and the others vote for it."""
        self.machines[name].fire()
        self.deliver()
        assert self.nodes[name].role == "leader"

    def deliver(self) -> list[Answer]:
        """Delivers all messages; returns the answers to clients."""
        answers = []
        while any(machine.sent for machine in self.machines.values()):
            for name, machine in self.machines.items():
                sent, machine.sent = machine.sent, []
                for to, message in sent:
                    if isinstance(message, Reply):
                        answers.append(message.body)
                    elif self.alone not in {name, to}:
                        self.nodes[to].receive(name, message)
        return answers

    def ask(self, name: str, body: Any) -> Answer:
        """Returns a node's answer to a request."""
        self.nodes[name].receive("client", Request(1, body))
        return next(iter(self.deliver()), Answer(outcomes.NO_ANSWER))

    def step(self, name: str, txn: str, function: str, key: str, value: Value = None) -> Value:
        """Carries out the next micro-operation of a transaction; returns its result."""
        return self.clients.done(txn, self.ask(name, self.clients.next_step(txn, function, key, value)))

    def commit(self, name: str, txn: str) -> str:
        """Commits a transaction; returns the code of the answer."""
        return self.ask(name, self.clients.end(txn)).code


def read_of_an_old_leader(bug: Bug) -> Any:
    """A leader is cut off, and another one commits. Returns what the old one answers to a transaction that only reads."""
    group = Group(bug)
    group.elect("n1")
    group.alone = "n1"
    group.elect("n2")
    group.step("n2", "t1", "append", "x", 1)
    assert group.commit("n2", "t1") == outcomes.OK
    assert group.step("n1", "t2", "r", "x") is None
    return group.commit("n1", "t2")


def read_of_a_new_leader(bug: Bug) -> Any:
    """A leader commits, and is cut off before it tells anybody. Returns what a transaction reads at the next leader."""
    group = Group(bug)
    group.elect("n1")
    group.step("n1", "t1", "append", "x", 1)
    assert group.commit("n1", "t1") == outcomes.OK
    group.alone = "n1"
    group.elect("n2")
    return group.step("n2", "t2", "r", "x")


def commit_at_a_new_leader(bug: Bug) -> Any:
    """A commit comes again to the next leader. Returns its answer, and the list."""
    group = Group(bug)
    group.elect("n1")
    group.step("n1", "t1", "append", "x", 1)
    assert group.commit("n1", "t1") == outcomes.OK
    group.elect("n2")
    return group.commit("n2", "t1"), group.step("n2", "t2", "r", "x")


def commit_of_a_node_alone(bug: Bug) -> Any:
    """A leader that is cut off gets a commit. Returns its answer, and the list at the next leader."""
    group = Group(bug)
    group.elect("n1")
    group.alone = "n1"
    group.step("n1", "t1", "append", "x", 1)
    answer = group.commit("n1", "t1")
    group.elect("n2")
    group.alone = None
    group.elect("n3")
    return answer, group.step("n3", "t2", "r", "x")


SCHEDULES: dict[Bug, Schedule] = {
    Bug.RETRIES_UNKNOWN: Schedule(lost_answer, (Info, [1]), (Ok, [1, 1])),
    Bug.APPLIED_TWICE: Schedule(commit_again, [1, 2], [1, 2, 1]),
    Bug.OLD_TIMESTAMP: Schedule(read_after_a_commit, [1], None),
    Bug.LATE_SNAPSHOT: Schedule(two_reads, (None, None), (None, [2])),
    Bug.OWN_WRITES_MISSING: Schedule(own_write, [1], None),
    Bug.LOCKS_EXISTING_KEYS: Schedule(skew_of_absent_keys, outcomes.CONFLICT, outcomes.OK),
    Bug.ONE_DIRECTION: Schedule(skew_of_late_reads, outcomes.CONFLICT, outcomes.OK),
    Bug.LOST_UPDATES: Schedule(blind_appends, (outcomes.CONFLICT, [1]), (outcomes.OK, [2])),
    Bug.ABORT_LEAVES_WRITES: Schedule(conflict_at_the_second_key, None, [1]),
    Bug.PARTIAL_AFTER_CRASH: Schedule(kill_in_a_commit, ([1], [1]), ([1], None)),
    Bug.COMMIT_BEFORE_SYNC: Schedule(power_loss, [1], None),
    Bug.FAILED_SYNC_TRUSTED: Schedule(failed_syncs, [], [outcomes.OK]),
    Bug.REPLICA_ORDER: Schedule(reads_of_a_replica, [], [[None, [2]]]),
    Bug.OLD_LEADER_READS: Schedule(read_of_an_old_leader, outcomes.NO_ANSWER, outcomes.OK),
    Bug.NEW_LEADER_TIMESTAMP: Schedule(read_of_a_new_leader, [1], None),
    Bug.FORGETS_COMMITTED: Schedule(commit_at_a_new_leader, (outcomes.OK, [1]), (outcomes.ABORTED, [1])),
    Bug.COMMIT_BEFORE_MAJORITY: Schedule(commit_of_a_node_alone, (outcomes.NO_ANSWER, None), (outcomes.OK, None)),
}


@pytest.mark.parametrize("bug", SCHEDULES)
def test_each_bug_has_another_end(bug: Bug) -> None:
    """The correct version ends as it should, and the bug as it is described."""
    assert_shows(SCHEDULES, bug)


def test_every_bug_has_a_schedule() -> None:
    """And a description."""
    assert_each(SCHEDULES, Bug, TABLE)


def test_a_commit_of_an_earlier_term_never_happens() -> None:
    """A copy of a first step after a restart begins another transaction, which an old commit does not commit."""
    stage = Stage(Bug.NONE)
    stage.step("t1", "append", "x", 1)
    before = stage.clients.epochs["t1"]
    stage.start()
    assert stage.commit("t1") == outcomes.ABORTED
    assert stage.ask(Step("t1", None, 0, ("append", "x", 1))).code == outcomes.ABORTED
    stage.start()
    stage.ask(Step("t1", None, 0, ("append", "x", 1)))
    assert stage.ask(Commit("t1", before, 1)).code == outcomes.ABORTED
    assert stage.value("x") is None


def test_a_deposed_leader_gives_no_certain_answer() -> None:
    """Its record may be on the way to a majority, so a commit that waits is not answered with a failure."""
    group = Group(Bug.NONE)
    group.elect("n1")
    group.step("n1", "t1", "append", "x", 1)
    group.nodes["n1"].receive("client", Request(1, group.clients.end("t1")))
    for to, message in group.machines["n1"].sent:
        if to == "n3":
            group.nodes[to].receive("n1", message)
    group.machines["n1"].sent.clear()
    group.machines["n3"].sent.clear()
    group.machines["n2"].fire()
    [answer] = group.deliver()
    assert answer.code == outcomes.NOT_LEADER
    assert answer.code not in outcomes.NEVER_HAPPENED
    assert [node.role for node in group.nodes.values()] == ["follower", "candidate", "follower"]
    group.elect("n3")
    assert group.commit("n3", "t1") == outcomes.OK
    assert group.step("n3", "t2", "r", "x") == [1]


def test_snapshots_and_read_committed_check_less() -> None:
    """Snapshots allow a write skew; read committed shows two states, and still loses no append after a read of its own."""
    stage = Stage(Bug.NONE, Isolation.SNAPSHOT)
    stage.step("t1", "r", "x")
    stage.step("t2", "r", "y")
    assert stage.run("t1", ("append", "y", 1)) == stage.run("t2", ("append", "x", 2)) == outcomes.OK
    stage = Stage(Bug.NONE, Isolation.READ_COMMITTED)
    assert stage.step("t1", "r", "x") is None
    stage.run("t2", ("append", "x", 1))
    assert stage.step("t1", "r", "x") == [1]
    stage.step("t1", "append", "x", 2)
    stage.run("t3", ("append", "x", 3))
    assert stage.commit("t1") == outcomes.CONFLICT


def test_a_damaged_record_is_repaired_or_ends_the_node() -> None:
    """It never goes on without a record or a vote that it had."""
    stage = Stage(Bug.NONE)
    stage.run("t1", ("append", "x", 1))
    disk, names = stage.machine.disk, stage.machine.disk.names()
    for name in names:
        disk.truncate(name, 3)
        stage.start()
        assert stage.value("x") == [1]
    records = len(stage.node.store.records)
    stage.node.store.save(records + 2, Record("t2", (("x", [1]),), 1))
    stage.start()
    assert stage.ask(Step("t2", None, 0, ("r", "x", None))).code == outcomes.NO_ANSWER
    stage.node.store.cut(records)
    for name in names:
        disk.truncate(name, 3)
    stage.start()
    assert stage.ask(Step("t2", None, 0, ("r", "x", None))).code == outcomes.NO_ANSWER
