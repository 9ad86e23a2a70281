"""A Raft node between two restarts: its role, its commit index, and its clients' requests.

Source: Ongaro, "Consensus: bridging theory and practice" (2014), chapters 3, 5 and 6; comments cite the sections. The parts of
a node are `storage` (the durable state), `elections`, `replication` (the leader's part), `following` (the follower's part),
`reads`, `transfers`, and `service` (the state machine and its sessions).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from clusters.sim import asking
from clusters.sim.host import Reply, Request
from clusters.systems.sim_raft import messages, outcomes
from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.elections import Elections
from clusters.systems.sim_raft.following import Following
from clusters.systems.sim_raft.messages import Answer, Snapshot
from clusters.systems.sim_raft.reads import ReadService
from clusters.systems.sim_raft.replication import Replication
from clusters.systems.sim_raft.roles import Role
from clusters.systems.sim_raft.service import Service, described, encoded
from clusters.systems.sim_raft.storage import Storage
from clusters.systems.sim_raft.transfers import Transfers
from harness.node_states import HeldEntry
from harness.op import ONLY_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.host import Host
    from clusters.systems.sim_raft.options import SimRaftOptions
    from harness.node_states import NodeState

# After a snapshot the log keeps snapshot_entries / TRAILING entries, for followers that are almost up to date.
TRAILING: Final = 4


class Raft:
    """A node, started from its disk.

    Attributes:
        name: The node's name.
        others: The names of the other nodes.
        quorum: The number of nodes in a majority.
        role: Its role.
        leader: The leader of its term; None if it knows none.
        commit: Its commit index. It has applied all entries up to there.
    """

    def __init__(
        self, host: Host, options: SimRaftOptions, workload: str, after: Callable[[int, Callable[[], None]], None]
    ) -> None:
        """Reads the disk.

        Args:
            host: The machine.
            options: The configuration of the node.
            workload: The name of the workload, which determines the state machine.
            after: Calls a function after a delay in nanoseconds, unless the node restarts before.

        Raises:
            DamagedDiskError: The disk has lost the node's term and vote.
            OSError: The disk is full.
        """
        self.host = host
        self.options = options
        self.bugs = options.bugs
        self.after = after
        self.name = host.name
        self.others = tuple(peer for peer in host.peers if peer != host.name)
        self.quorum = _quorum(len(host.peers), self.bugs)
        self.role = Role.FOLLOWER
        self.leader: str | None = None
        self.storage = Storage(host.disk, self.bugs)
        self.storage.load()
        self.service = Service(workload, self.bugs)
        self.commit = 0
        if self.storage.snapshot is not None:
            self.service.load(self.storage.snapshot.body)
            self.commit = self.storage.snapshot.index
        self._pending: dict[int, tuple[str, int]] = {}  # the client and request of each index
        self.elections = Elections(self)
        self.replication = Replication(self)
        self.following = Following(self)
        self.reads = ReadService(self)
        self.transfers = Transfers(self)

    def start(self) -> None:
        """Logs what the disk has, if it has something, and starts the election timer."""
        storage = self.storage
        if storage.term or storage.last:
            vote = "no vote" if storage.vote is None else f"a vote for {storage.vote}"
            snapshot = "no snapshot" if storage.snapshot is None else f"a snapshot up to {storage.snapshot.index}"
            entries = f"entries {storage.base + 1} to {storage.last}" if storage.entries else "no entries"
            self.host.log(f"loads term {storage.term}, {vote}, {entries} and {snapshot}")
        self.elections.start()

    # -- clocks and messages -------------------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """Returns the clock of all timers."""
        return self.host.monotonic_ns()

    def lease_clock_ns(self) -> int:
        """Returns the clock of the leases."""
        return self.host.wall_ns() if Bug.LEASE_ON_WALL_CLOCK in self.bugs else self.host.monotonic_ns()

    def send(self, to: str, message: Any) -> None:
        """Sends a message to a node."""
        self.host.send(to, message)

    def answer(self, client: str, request: int, answer: Any) -> None:
        """Answers a client's request."""
        self.host.send(client, Reply(request, answer))

    def refuse(self, client: str, request: int) -> None:
        """Refuses a request because the node is not the leader. The answer names the leader if the node knows it."""
        known = self.leader if self.leader != self.name else None
        code = outcomes.NO_LEADER if known is None else outcomes.NOT_LEADER
        self.answer(client, request, Answer(code, leader=known))

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message of a node or a client."""
        match message:
            case messages.Append():
                self.following.handle_append(sender, message)
            case messages.Appended():
                self.replication.handle_appended(sender, message)
            case Request():
                self._handle_request(sender, message.id, message.body)
            case messages.AskVote():
                self.elections.handle_ask_vote(sender, message)
            case messages.Vote():
                self.elections.handle_vote(sender, message)
            case messages.Install():
                self.following.handle_install(sender, message)
            case messages.TimeoutNow():
                self.elections.handle_timeout_now(message)

    def _handle_request(self, client: str, request: int, body: Any) -> None:
        match body:
            case messages.Command():
                if self.role is not Role.LEADER:
                    self.refuse(client, request)
                else:
                    self.propose(client, request, encoded(body))
            case messages.Query():
                self.reads.ask(client, request, body)
            case asking.AskStatus():
                self.answer(client, request, self._status())
            case messages.AskDump():
                self.answer(client, request, messages.Dump(self.commit, self.service.dump()))
            case messages.AskTransfer():
                self.transfers.ask(client, request, body.to)
            case _:
                self.answer(client, request, Answer(outcomes.UNSUPPORTED))

    # -- roles ---------------------------------------------------------------------------------------------------------------

    def follow(self, term: int, leader: str | None) -> None:
        """Becomes a follower in a term, which is not lower than its own (3.3)."""
        was_leader = self.role is Role.LEADER
        self.role, self.leader = Role.FOLLOWER, leader
        if term > self.storage.term:
            self.storage.promise(term, None)
        if was_leader:
            self._lose_leadership()

    def become_candidate(self) -> None:
        """Becomes a candidate."""
        self.role, self.leader = Role.CANDIDATE, None

    def lead(self) -> None:
        """Becomes the leader of its term."""
        self.role, self.leader = Role.LEADER, self.name
        self.host.log(f"leads term {self.storage.term} with a log up to {self.storage.last}")
        self.replication.begin()

    def serves(self) -> bool:
        """Returns whether the node has committed an entry of its own term."""
        return self.storage.term_at(self.commit) == self.storage.term

    def _lose_leadership(self) -> None:
        self.reads.leadership_lost()
        self.transfers.leadership_lost()
        pending, self._pending = self._pending, {}
        for client, request in pending.values():
            if Bug.LOST_LEADERSHIP_IS_FAIL in self.bugs:
                self.refuse(client, request)
            else:
                self.answer(client, request, Answer(outcomes.LEADERSHIP_LOST))

    # -- the log and the state machine ---------------------------------------------------------------------------------------

    def propose(self, client: str, request: int, body: bytes) -> None:
        """Appends a client's entry as the leader. The client gets the answer when the entry is applied."""
        if self.transfers.is_active:
            self.answer(client, request, Answer(outcomes.TRANSFERRING))
            return
        self._pending[self.storage.last + 1] = (client, request)
        self.replication.propose(body)

    def committed(self, index: int) -> None:
        """Advances the commit index, applies the entries up to there, and makes a snapshot if one is due."""
        if index <= self.commit:
            return
        storage = self.storage
        for number in range(self.commit + 1, index + 1):
            self.commit = number
            result = self.service.apply(number, storage.at(number).body)
            if number in self._pending:
                self.answer(*self._pending.pop(number), Answer(*result))
        if 0 < storage.repairs_until <= index:
            storage.repaired()
        every, previous = self.options.snapshot_entries, storage.snapshot.index if storage.snapshot else 0
        if every and index - previous >= every:
            self.host.log(f"takes a snapshot up to {index}")
            snapshot = Snapshot(index, storage.term_at(index) or 0, self.service.saved())
            storage.keep_snapshot(snapshot, trailing=every // TRAILING)

    def install(self, snapshot: Snapshot) -> None:
        """Replaces the state by a leader's snapshot."""
        self.host.log(f"installs a snapshot up to {snapshot.index}")
        self.storage.keep_snapshot(snapshot, trailing=0, alone=Bug.OLD_SNAPSHOT_INSTALLED in self.bugs)
        self.service.load(snapshot.body)
        self.commit = snapshot.index
        if 0 < self.storage.repairs_until <= snapshot.index:
            self.storage.repaired()

    def node_state(self, process: NodeState, key: str | None) -> NodeState:
        """Returns the state of the node, with its role and its log.

        Args:
            process: The state of its process.
            key: The key whose entries and value the result shows; None for a workload with one object.
        """
        storage, own = self.storage, ONLY_KEY if key is None else key
        entries = []
        for index, entry in enumerate(storage.entries, storage.base + 1):
            text = described(entry.body, own)
            if text is not None:
                entries.append(HeldEntry(index=index, term=entry.term, text=text))
        value = self.service.dump().get(f"object {own}")
        return replace(
            process,
            role=str(self.role),
            term=storage.term,
            last=storage.last,
            last_term=storage.last_term,
            committed=self.commit,
            value="nil" if value is None else str(value),
            entries=tuple(entries),
        )

    def _status(self) -> messages.Status:
        storage = self.storage
        return messages.Status(
            role=self.role,
            term=storage.term,
            leader=self.leader,
            applied=self.commit,
            committed=self.commit,
            last=storage.last,
            snapshot=storage.snapshot.index if storage.snapshot else 0,
            serving=self.role is Role.LEADER and self.serves(),
            repairing=storage.repairs_until > 0,
        )


def _quorum(nodes: int, bugs: frozenset[Bug]) -> int:
    """Returns the size of a majority of so many nodes."""
    if Bug.HALF_IS_MAJORITY in bugs:
        return max(1, nodes // 2)
    if Bug.HALF_OF_EVEN_IS_MAJORITY in bugs:
        return (nodes + 1) // 2
    return nodes // 2 + 1
