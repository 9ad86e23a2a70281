"""Each planted bug of the simulated store by a schedule: the test sends the messages, and the bug has another end.

Each schedule returns what it sees at the end. The correct version ends in one way, and the bug in another.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.disk import SimDisk
from clusters.sim.errors import Broken
from clusters.sim.host import Reply, Request
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import TABLE, Bug
from clusters.systems.sim_txn.client import SimTxnClient
from clusters.systems.sim_txn.messages import Answer, Batch, Commit, Fetch, ReadOnly, Record, Step
from clusters.systems.sim_txn.options import Isolation, SimTxnOptions
from clusters.systems.sim_txn.primary import Primary
from clusters.systems.sim_txn.replica import Replica
from harness.node import Node
from harness.op import Info, Invocation, Ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.host import Disk
    from harness.op import Value


class Machine:
    """A `clusters.sim.host.Host` whose messages and timers stay with the test."""

    def __init__(self) -> None:
        self.name = "n1"
        self.peers: tuple[str, ...] = ("n1", "n2")
        self.random = Random(1)
        self.files = SimDisk("n1")
        self.disk: Disk = self.files
        self.sent: list[Any] = []
        self.timers: list[Callable[[], None]] = []

    def wall_ns(self) -> int:
        """Returns 0."""
        return 0

    monotonic_ns = wall_ns

    def after(self, delay_ns: int, action: Callable[[], None]) -> Any:
        """Keeps an action."""
        assert delay_ns >= 0
        self.timers.append(action)

    def send(self, to: str, message: Any) -> None:
        """Keeps a message."""
        assert to
        self.sent.append(message)

    def log(self, text: str) -> None:
        """Drops a line."""

    def fire(self) -> None:
        """Runs the actions that wait now."""
        due, self.timers = self.timers, []
        for action in due:
            action()


class Stage:
    """A primary, and what its clients know."""

    def __init__(self, bug: Bug, isolation: Isolation = Isolation.SERIALIZABLE) -> None:
        self.options = SimTxnOptions(bug=bug, isolation=isolation)
        self.machine = Machine()
        self.epochs: dict[str, int] = {}
        self.steps: dict[str, int] = {}
        self.start()

    def start(self) -> None:
        """Starts the process, again after a kill."""
        self.machine.timers.clear()
        self.primary = Primary(self.machine, self.options)
        self.primary.start()

    def ask(self, body: Any) -> Answer:
        """Returns the answer to a request; that of a commit may come with a timer."""
        self.machine.sent.clear()
        self.primary.receive("client", Request(1, body))
        if not self.machine.sent:
            return Answer(outcomes.NO_ANSWER)
        [reply] = self.machine.sent
        assert isinstance(reply, Reply)
        answer: Answer = reply.body
        return answer

    def step(self, txn: str, function: str, key: str, value: Value = None) -> Value:
        """Carries out the next micro-operation of a transaction; returns its result."""
        number = self.steps.get(txn, 0)
        answer = self.ask(Step(txn, self.epochs.get(txn), number, (function, key, value)))
        assert answer.code == outcomes.OK
        assert answer.epoch is not None
        self.steps[txn], self.epochs[txn] = number + 1, answer.epoch
        return answer.value

    def commit(self, txn: str) -> str:
        """Commits a transaction; returns the code of the answer."""
        return self.ask(Commit(txn, self.epochs[txn], self.steps[txn])).code

    def run(self, txn: str, *mops: tuple[str, str, Value]) -> str:
        """Carries out a transaction at once."""
        for mop in mops:
            self.step(txn, *mop)
        return self.commit(txn)

    def value(self, key: str) -> Value:
        """Returns what a new transaction reads of a key."""
        return self.step(f"look-{len(self.steps)}", "r", key)


class _Lossy:
    """A connection on which each answer to a first commit is lost."""

    name = "c"

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.lost = 0

    async def ask(self, node: str, body: object, timeout_s: float | None) -> object:
        """Asks the primary of the stage."""
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
    client = SimTxnClient(connection=_Lossy(stage), node=node, primary="n1", replica=None, options=options)
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
    """The primary is killed right after a commit of two keys. Returns both lists after the restart."""
    stage = Stage(bug)
    stage.run("t1", ("append", "x", 1), ("append", "y", 1))
    stage.start()
    return stage.value("x"), stage.value("y")


def power_loss(bug: Bug) -> Any:
    """The primary loses its power after an answered commit. Returns the list."""
    stage = Stage(bug)
    assert stage.run("t1", ("append", "x", 1)) == outcomes.OK
    stage.machine.files.lose_power()
    stage.start()
    return stage.value("x")


def reads_of_a_replica(bug: Bug) -> Any:
    """A replica gets two commits at once. Returns whether each of its states is one that the primary had."""
    machine = Machine()
    replica = Replica(machine, SimTxnOptions(bug=bug), "n2")
    replica.start()
    assert machine.sent == [Fetch(1)]
    machine.timers.clear()
    replica.receive("n2", Batch(1, (Record("t1", (("x", [1]),)), Record("t2", (("y", [2]),)))))
    seen = []
    for action in [lambda: None, *reversed(machine.timers)]:
        action()
        machine.sent.clear()
        replica.receive("client", Request(1, ReadOnly(("x", "y"))))
        seen.append(machine.sent[0].body.value)
    return [each for each in seen if each not in ([None, None], [[1], None], [[1], [2]])]


SCHEDULES: dict[Bug, tuple[Callable[[Bug], Any], Any, Any]] = {
    Bug.RETRIES_UNKNOWN: (lost_answer, (Info, [1]), (Ok, [1, 1])),
    Bug.APPLIED_TWICE: (commit_again, [1, 2], [1, 2, 1]),
    Bug.OLD_TIMESTAMP: (read_after_a_commit, [1], None),
    Bug.LATE_SNAPSHOT: (two_reads, (None, None), (None, [2])),
    Bug.OWN_WRITES_MISSING: (own_write, [1], None),
    Bug.LOCKS_EXISTING_KEYS: (skew_of_absent_keys, outcomes.CONFLICT, outcomes.OK),
    Bug.ONE_DIRECTION: (skew_of_late_reads, outcomes.CONFLICT, outcomes.OK),
    Bug.LOST_UPDATES: (blind_appends, (outcomes.CONFLICT, [1]), (outcomes.OK, [2])),
    Bug.ABORT_LEAVES_WRITES: (conflict_at_the_second_key, None, [1]),
    Bug.PARTIAL_AFTER_CRASH: (kill_in_a_commit, ([1], [1]), ([1], None)),
    Bug.COMMIT_BEFORE_SYNC: (power_loss, [1], None),
    Bug.REPLICA_ORDER: (reads_of_a_replica, [], [[None, [2]]]),
}


@pytest.mark.parametrize("bug", SCHEDULES)
def test_each_bug_has_another_end(bug: Bug) -> None:
    """The correct version ends as it should, and the bug as it is described."""
    schedule, correct, wrong = SCHEDULES[bug]
    assert schedule(Bug.NONE) == correct
    assert schedule(bug) == wrong


def test_every_bug_has_a_schedule() -> None:
    """And a description."""
    assert set(SCHEDULES) == set(TABLE) == set(Bug) - {Bug.NONE}


def test_a_commit_of_an_earlier_start_never_happens() -> None:
    """A copy of a first step after a restart begins another transaction, which an old commit does not commit."""
    stage = Stage(Bug.NONE)
    stage.step("t1", "append", "x", 1)
    before = stage.epochs["t1"]
    stage.machine.random.seed(2)
    stage.start()
    assert stage.commit("t1") == outcomes.ABORTED
    assert stage.ask(Step("t1", None, 0, ("append", "x", 1))).code == outcomes.ABORTED
    stage.start()
    stage.ask(Step("t1", None, 0, ("append", "x", 1)))
    assert stage.ask(Commit("t1", before, 1)).code == outcomes.ABORTED
    assert stage.value("x") is None


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


def test_a_damaged_commit_is_repaired_or_ends_the_primary() -> None:
    """It never goes on without a commit that it had; a replica fetches all commits again."""
    stage = Stage(Bug.NONE)
    stage.run("t1", ("append", "x", 1))
    disk, names = stage.machine.disk, stage.machine.disk.names()
    for name in names:
        disk.truncate(name, 3)
        stage.start()
        assert stage.value("x") == [1]
    for name in names:
        disk.truncate(name, 3)
    replica = Replica(stage.machine, stage.options, "n2")
    replica.start()
    assert (stage.machine.sent[-1], disk.names()) == (Fetch(1), [])
    stage.primary.store.save(2, Record("t2", (("x", [1]),)))
    stage.start()
    assert stage.ask(Step("t2", None, 0, ("r", "x", None))).code == outcomes.NO_ANSWER
