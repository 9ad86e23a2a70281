"""A replica: it fetches the commits of the primary, applies them in their order, and answers reads from its own state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clusters.sim.files import DamagedFileError
from clusters.sim.host import Reply, Request
from clusters.systems.sim_txn import outcomes
from clusters.systems.sim_txn.bugs import Bug
from clusters.systems.sim_txn.messages import Answer, AskStatus, Batch, Fetch, ReadOnly, Record, Status
from clusters.systems.sim_txn.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.host import Host
    from clusters.systems.sim_txn.options import SimTxnOptions

ROLE: Final = "follower"
MS: Final = 1_000_000
SPREAD_MS: Final = 20  # of the commits of a batch, with the bug `replica-order`


class Replica:
    """A `clusters.sim.host.Process`.

    Attributes:
        store: The commits that it has applied.
    """

    def __init__(self, host: Host, options: SimTxnOptions, primary: str) -> None:
        """Makes the process.

        Args:
            host: The machine.
            options: The configuration.
            primary: The node to fetch from.
        """
        self.store = Store(host.disk)
        self._host = host
        self._primary = primary
        self._bug = options.bug
        self._fetch_ns = options.fetch_ms * MS

    def start(self) -> None:
        """Reads the disk, and begins to fetch."""
        try:
            self.store.load()
        except (DamagedFileError, OSError) as error:
            self._host.log(f"fetches everything again: {error}")
            self.store.forget()
        self._host.log(f"follows with {len(self.store.records)} commits")
        self._fetch()

    def receive(self, sender: str, message: Any) -> None:
        """Handles the primary's commits, or a request of a client or an observer."""
        match message:
            case Batch(first, records):
                self._take(first, records)
            case Request(number, ReadOnly(keys)):
                applied = len(self.store.records)
                values = [self.store.at(key, applied) for key in keys]
                self._host.send(sender, Reply(number, Answer(outcomes.OK, values)))
            case Request(number, AskStatus()):
                self._host.send(sender, Reply(number, Status(ROLE, self._primary, len(self.store.records))))
            case Request(number, _):
                self._host.send(sender, Reply(number, Answer(outcomes.NOT_PRIMARY)))

    def _fetch(self) -> None:
        self._host.send(self._primary, Fetch(len(self.store.records) + 1))
        self._host.after(self._fetch_ns, self._fetch)

    def _take(self, first: int, records: Sequence[Record]) -> None:
        """Applies the commits that come next."""
        for number, record in enumerate(records, first):
            if number != len(self.store.records) + 1:
                continue
            try:
                self.store.save(number, record)
            except OSError as error:
                self._host.log(f"drops a commit: {error}")
                return
            self._apply(number, record)

    def _apply(self, number: int, record: Record) -> None:
        if self._bug is not Bug.REPLICA_ORDER:
            self.store.apply(record)
            return
        self.store.records.append(record)
        delay_ns = self._host.random.randrange(SPREAD_MS) * MS
        self._host.after(delay_ns, lambda: self.store.put(record, number))
