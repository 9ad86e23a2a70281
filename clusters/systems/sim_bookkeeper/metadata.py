"""The metadata store: for each log one register with a version, changed by compare-and-set. It stands for ZooKeeper.

`meta-KEY` and a copy are the register. The store syncs both before it answers. If both are damaged, it takes no part any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clusters.sim import asking, files
from clusters.sim.host import DiskFull, Reply, Request
from clusters.systems.sim_bookkeeper import messages, outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.ledger_messages import AskHeld, Held
from clusters.systems.sim_bookkeeper.messages import Fragment, Meta, MetaIs, Segment

if TYPE_CHECKING:
    from clusters.sim.host import Host
    from clusters.systems.sim_bookkeeper.options import SimBookkeeperOptions

ROLE: Final = "metadata"
_META: Final = "meta"


class MetadataStore:
    """A `clusters.sim.host.Process`."""

    def __init__(self, host: Host, options: SimBookkeeperOptions, first: Meta) -> None:
        """Makes the process.

        Args:
            host: The machine.
            options: The configuration.
            first: The metadata of a log at the beginning.
        """
        self._host = host
        self._bug = options.bug
        self._first = first
        self._metas: dict[str, Meta] = {}
        self._serves = True

    def start(self) -> None:
        """Reads the disk."""
        try:
            files.write_again(self._host.disk)
            for key, (version, term, is_open, owner, segments) in files.read_promises(self._host.disk, _META).items():
                read = tuple(
                    Segment(number, first, last, tuple(Fragment(start, tuple(names)) for start, names in fragments))
                    for number, first, last, fragments in segments
                )
                self._metas[key] = Meta(version, term, is_open, owner, read)
        except (files.DamagedFileError, DiskFull) as error:
            self._serves = False
            self._host.log(f"takes no part: {error}")

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message of a client node, or an observer's request. A full disk makes it drop the message."""
        if not self._serves:
            return
        match message:
            case messages.Put(key, meta):
                if meta.version == self.meta(key).version + 1 or self._bug is Bug.CAS_LEFT_OUT:
                    try:
                        files.write_promise(self._host.disk, _META, key, list(meta))
                    except DiskFull as error:
                        self._host.log(f"drops a message: {error}")
                        return
                    self._metas[key] = meta
                self._host.send(sender, MetaIs(key, 0, self.meta(key)))
            case messages.Get(key, number):
                self._host.send(sender, MetaIs(key, number, self.meta(key)))
            case Request(number, AskHeld(key)):
                self._host.send(sender, Reply(number, Held(meta=self.meta(key))))
            case Request(number, asking.AskStatus()):
                self._host.send(sender, Reply(number, messages.Status(ROLE, None, None, None)))
            case Request(number, _):
                self._host.send(sender, Reply(number, messages.Answer(outcomes.NOT_CLIENT)))

    def meta(self, key: str) -> Meta:
        """Returns the metadata of a log."""
        return self._metas.get(key, self._first)
