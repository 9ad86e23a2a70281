"""Nodes of the simulated Raft under a handwritten schedule: the test delivers each message.

Nothing happens by itself. Messages wait until the test delivers or loses them, timers never fire, and time passes only when
the test advances it. So a schedule shows one bug, step by step.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Any, Final

from clusters.sim.disk import SimDisk
from clusters.sim.host import Reply, Request
from clusters.systems.sim_raft.messages import Answer, AskTransfer, AskVote, Command, Query, Vote
from clusters.systems.sim_raft.options import Reads, SimRaftOptions
from clusters.systems.sim_raft.raft import Raft
from clusters.systems.sim_raft.roles import Role
from harness.op import ONLY_KEY
from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from clusters.sim.host import Disk
    from clusters.systems.sim_raft.bugs import Bug

NODES: Final = ("n1", "n2", "n3", "n4", "n5")
MOST_DELIVERIES: Final = 500  # the maximum number of deliveries in one exchange, to detect a livelock


class Host:
    """A machine on the stage; see `clusters.sim.host.Host`."""

    def __init__(self, name: str, stage: Stage) -> None:
        self.name = name
        self.peers = stage.names
        self.random = Random(name)
        self.disk: Disk = SimDisk(name)
        self.ahead_ns = 0
        self._stage = stage

    def wall_ns(self) -> int:
        """Returns the time of the stage, plus the offset that the test has set."""
        return self._stage.now_ns + self.ahead_ns

    def monotonic_ns(self) -> int:
        """Returns the time of the stage."""
        return self._stage.now_ns

    def after(self, delay_ns: int, action: Callable[[], None]) -> Any:
        """Does nothing: no timer fires."""

    def send(self, to: str, message: Any) -> None:
        """Puts a message into the mail, or stores a client's answer."""
        if isinstance(message, Reply):
            self._stage.answers[message.id] = message.body
        else:
            self._stage.mail.append((self.name, to, message))

    def log(self, text: str) -> None:
        """Does nothing: there is no log."""


class Stage:
    """Nodes and their mail.

    Attributes:
        names: The names of the nodes.
        hosts: Their machines by name.
        nodes: The nodes by name; a restart replaces one.
        mail: Messages in flight: sender, receiver, message.
        answers: The answers to clients, by the number of the request.
        now_ns: The time.
    """

    def __init__(
        self,
        bug: Bug,
        *,
        reads: Reads = Reads.READ_INDEX,
        snapshot_entries: int = 0,
        batch: int = 16,
        names: tuple[str, ...] = NODES,
    ) -> None:
        self.names = names
        self.options = SimRaftOptions(
            bug=bug, reads=reads, pre_vote=False, snapshot_entries=snapshot_entries, batch=batch
        )
        self.mail: deque[tuple[str, str, Any]] = deque()
        self.answers: dict[int, Any] = {}
        self.now_ns = 0
        self.hosts = {name: Host(name, self) for name in names}
        self.nodes = {name: self._started(name) for name in names}
        self._requests: list[Any] = []
        self.wait(1000)

    def wait(self, milliseconds: int) -> None:
        """Advances the time."""
        self.now_ns += milliseconds * NS_PER_MS

    def restart(self, name: str, *, power: bool = False) -> None:
        """Kills a node and starts it from its disk, which may have lost unsynced data."""
        disk = self.hosts[name].disk
        if power and isinstance(disk, SimDisk):
            disk.lose_power()
        self.nodes[name] = self._started(name)

    def exchange(self, *names: str, kinds: Collection[type] = ()) -> None:
        """Delivers all mail among some nodes, and their answers to it.

        Args:
            names: The nodes.
            kinds: The types of messages to deliver; empty: all.
        """
        for _ in range(MOST_DELIVERIES):
            wanted = (
                mail
                for mail in self.mail
                if mail[0] in names and mail[1] in names and (not kinds or type(mail[2]) in kinds)
            )
            letter = next(wanted, None)
            if letter is None:
                return
            self.mail.remove(letter)
            self.nodes[letter[1]].receive(letter[0], letter[2])

    def deliver(self, sender: str, to: str) -> None:
        """Delivers the oldest message from a node to another one."""
        letter = next(mail for mail in self.mail if mail[:2] == (sender, to))
        self.mail.remove(letter)
        self.nodes[to].receive(sender, letter[2])

    def lose(self, *names: str) -> None:
        """Loses all mail to and from some nodes; by default all mail."""
        lost = names or self.names
        self.mail = deque(mail for mail in self.mail if mail[0] not in lost and mail[1] not in lost)

    def campaign(self, name: str, *voters: str) -> bool:
        """Makes a node a candidate, and delivers its election's messages only. Returns whether it leads."""
        self.nodes[name].elections._campaign(pre=False)
        self.exchange(name, *voters, kinds=(AskVote, Vote))
        return self.leads(name)

    def leads(self, name: str) -> bool:
        """Returns whether a node leads."""
        return self.nodes[name].role is Role.LEADER

    def beat(self, name: str) -> None:
        """Makes a leader send its heartbeats."""
        if self.leads(name):
            self.nodes[name].replication.new_round()

    def write(self, name: str, value: int) -> int:
        """Sends a client's write to a node. Returns the number of the request."""
        return self._ask(name, Command(f"c{len(self._requests)}", 1, "write", ONLY_KEY, value))

    def repeat(self, name: str, number: int) -> int:
        """Repeats a client's request to a node. Returns the number of the new request."""
        return self._ask(name, self._requests[number])

    def read(self, name: str) -> int:
        """Sends a client's read to a node. Returns the number of the request."""
        return self._ask(name, Query("read", ONLY_KEY, None))

    def transfer(self, name: str, to: str) -> None:
        """Requests a leadership transfer from a leader."""
        self._ask(name, AskTransfer(to))

    def answered(self, number: int) -> int | None:
        """Returns the value of a successful answer; None for any other answer, and for none."""
        answer = self.answers.get(number)
        value: int | None = answer.value if isinstance(answer, Answer) and answer.code == "ok" else None
        return value

    def acknowledged(self, number: int) -> bool:
        """Returns whether a request succeeded."""
        answer = self.answers.get(number)
        return isinstance(answer, Answer) and answer.code == "ok"

    def agree(self) -> bool:
        """Returns whether all nodes with the same number of applied entries have the same state."""
        states: dict[int, Any] = {}
        return all(
            states.setdefault(node.commit, node.service.dump()) == node.service.dump() for node in self.nodes.values()
        )

    def _ask(self, name: str, body: Any) -> int:
        self._requests.append(body)
        number = len(self._requests) - 1
        self.nodes[name].receive("client", Request(number, body))
        return number

    def _started(self, name: str) -> Raft:
        raft = Raft(self.hosts[name], self.options, "register", lambda *_: None)
        raft.start()
        return raft
