"""A client node: a process with the client library. It has no data of its own but the mark that it was started before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clusters.sim import asking
from clusters.sim.host import DiskFull, Reply, Request
from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.ledger import Ledger
from clusters.systems.sim_bookkeeper.ledger_messages import LedgerRequest
from clusters.systems.sim_bookkeeper.log import Log
from clusters.systems.sim_bookkeeper.setting import Setting
from harness.leaders import LEADER

if TYPE_CHECKING:
    from clusters.sim.host import Host
    from clusters.systems.sim_bookkeeper.layout import Layout
    from clusters.systems.sim_bookkeeper.messages import Meta
    from clusters.systems.sim_bookkeeper.options import SimBookkeeperOptions

ROLE: Final = "client"
_STARTED: Final = "started"


class ClientNode:
    """A `clusters.sim.host.Process`.

    The first process of the first client node is the writer of every log, in term 1. A later process is not: it does not know
    what the first one has written.

    Attributes:
        logs: The logs that it was asked about, by key.
        ledgers: The ledgers of the workload `ledger` that it was asked about, by key.
    """

    def __init__(self, host: Host, options: SimBookkeeperOptions, layout: Layout, first: Meta) -> None:
        self.logs: dict[str, Log] = {}
        self.ledgers: dict[str, Ledger] = {}
        self._host = host
        self._options = options
        self._layout = layout
        self._first = first
        self._writes = False

    def start(self) -> None:
        """Finds out whether it is the first process of its node."""
        disk = self._host.disk
        self._writes = self._host.name == self._first.owner and _STARTED not in disk.names()
        if self._writes:
            try:
                disk.write(_STARTED, b"yes")
            except DiskFull:
                self._writes = False
            disk.sync(_STARTED)

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message of a node or a client."""
        match message:
            case Request(number, asking.AskStatus()):
                self._host.send(sender, Reply(number, self._status()))
            case Request(number, messages.Append() | messages.Query() as body):
                self.log(body.key).ask(sender, number, body)
            case Request(number, LedgerRequest() as body):
                self.ledger(body.key).ask_ledger(sender, number, body)
            case Request(number, _):
                self._host.send(sender, Reply(number, messages.Answer(outcomes.UNSUPPORTED)))
            case _:
                (self.ledgers.get(message.key) or self.log(message.key)).receive(sender, message)

    def ledger(self, key: str) -> Ledger:
        """Returns its part in a ledger of the workload `ledger`."""
        if key not in self.ledgers:
            self.ledgers[key] = Ledger(Setting(self._host, self._options, self._layout, key), self._first)
        return self.ledgers[key]

    def log(self, key: str) -> Log:
        """Returns its part in a log."""
        if key not in self.logs:
            setting = Setting(self._host, self._options, self._layout, key)
            self.logs[key] = Log(setting, self._first, writes=self._writes)
        return self.logs[key]

    def role(self) -> str:
        """Returns `leader` if it is the writer of a log, and otherwise `client`."""
        writes = any(log.writer is not None for log in self.logs.values()) if self.logs else self._writes
        return LEADER if writes and not self.ledgers else ROLE

    def _status(self) -> messages.Status:
        newest = max((log.meta for log in self.logs.values()), key=lambda meta: meta.term, default=self._first)
        writers = [log.writer for log in self.logs.values() if log.writer is not None]
        term = max((writer.term for writer in writers), default=newest.term)
        confirmed = max((writer.lac for writer in writers), default=None)
        ledgers = [
            (key, ledger.writer.lac, ledger.writer.next - 1) for key, ledger in self.ledgers.items() if ledger.writer
        ]
        return messages.Status(self.role(), term, newest.owner, confirmed, tuple(ledgers))
