"""Nodes of the simulated BookKeeper, whose messages a test delivers by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clusters.sim.disk import SimDisk
from clusters.sim.explore.host import SearchHost
from clusters.sim.host import Process, Reply, Request
from clusters.systems.sim_bookkeeper import outcomes
from clusters.systems.sim_bookkeeper.bookie import Bookie
from clusters.systems.sim_bookkeeper.layout import Layout, first_meta
from clusters.systems.sim_bookkeeper.messages import Add, Answer, Append, Query
from clusters.systems.sim_bookkeeper.metadata import MetadataStore
from clusters.systems.sim_bookkeeper.node import ClientNode
from clusters.systems.sim_bookkeeper.options import Protocol, SimBookkeeperOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.systems.sim_bookkeeper.ledger_messages import AskHeld, LedgerRequest
    from clusters.systems.sim_bookkeeper.log import Log

NAMES = ("b1", "b2", "b3", "c1", "c2", "md")
KEY = "k"
MOST_REPEATS = 9


class Stage:
    """Three bookies, or more, two client nodes and the metadata store. The test delivers their messages."""

    def __init__(self, protocol: Protocol, *, bookies: int = 3, **options: Any) -> None:
        self.options = SimBookkeeperOptions(protocol=protocol, **options)
        self.names = (*(f"b{number}" for number in range(1, bookies + 1)), *NAMES[3:])
        self.layout = Layout.of(self.names, self.options.ack_quorum, self.options.ensemble)
        self.disks = {name: SimDisk(name) for name in self.names}
        self.hosts: dict[str, SearchHost] = {}
        self.processes: dict[str, Process] = {}
        self.waiting: list[tuple[str, str, Any]] = []  # the sender, the receiver and the message
        self.answers: dict[int, Answer] = {}
        self._requests = 0
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        """Starts the process of a node, from its disk."""
        host = self.hosts[name] = SearchHost(name, self.names, self.disks[name], 0)
        first = first_meta(self.layout, self.options.protocol)
        process: Process
        if name in self.layout.bookies:
            process = Bookie(host, self.options)
        elif name == self.layout.metadata:
            process = MetadataStore(host, self.options, first)
        else:
            process = ClientNode(host, self.options, self.layout, first)
        self.processes[name] = process
        process.start()

    def ask(self, node: str, body: Append | Query | LedgerRequest | AskHeld) -> int:
        """Gives a client's request to a node. Returns the number under which its answer comes."""
        self._requests += 1
        self.processes[node].receive("client", Request(self._requests, body))
        self._take(node)
        return self._requests

    def deliver(self, *, without: Callable[[str, str, Any], bool] = lambda *_: False) -> None:
        """Delivers all messages and what follows from them; those for which `without` is true are lost."""
        while self.waiting:
            sender, receiver, message = self.waiting.pop(0)
            if not without(sender, receiver, message):
                self.processes[receiver].receive(sender, message)
                self._take(receiver)

    def retry(self, node: str, times: int = 1) -> None:
        """Fires the timer of a client node. What it sends before the last time is lost."""
        for _ in range(times):
            self.waiting = []
            self.hosts[node].fire()
            self._take(node)

    def take_over(self, node: str, value: Any, *, without: Callable[[str, str, Any], bool]) -> int:
        """Lets a client node take over and append, with repetitions. Returns the number of the append."""
        number = self.ask(node, Append(KEY, value, takes_over=True))
        for _ in range(MOST_REPEATS):
            self.deliver(without=without)
            if number in self.answers:
                break
            self.retry(node)
        return number

    def log(self, node: str) -> Log:
        """Returns the part of a client node in the log."""
        process = self.processes[node]
        assert isinstance(process, ClientNode)
        return process.log(KEY)

    def _take(self, node: str) -> None:
        for to, message in self.hosts[node].take()[0]:
            if isinstance(message, Reply):
                self.answers[message.id] = message.body
            else:
                self.waiting.append((node, to, message))


def only_b1(_: str, receiver: str, message: Any) -> bool:
    """Loses the adds to all bookies but b1."""
    return isinstance(message, Add) and receiver != "b1"


def without_b1(sender: str, receiver: str, _: Any) -> bool:
    """Loses all messages from and to b1."""
    return "b1" in {sender, receiver}


def read(stage: Stage, offset: int, *, at: str = "c2") -> Any:
    """Returns what a client node reads at an offset; it asks b1 first."""
    number = stage.ask(at, Query(KEY, offset, offset, single=True, takes_over=False))
    stage.deliver()
    assert stage.answers[number].code == outcomes.OK
    return stage.answers[number].value
