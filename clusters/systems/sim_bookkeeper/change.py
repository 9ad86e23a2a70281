"""A writer's change of its ensemble: new bookies join, and then the metadata name them.

With terms and `--clean-new-bookies`, a new bookie joins first: it deletes its entries from the start of the new fragment on.
It can have such entries if it was in an earlier ensemble, and the recovery that ended them did not reach it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.systems.sim_bookkeeper import messages
from clusters.systems.sim_bookkeeper.ensemble import PATIENCE, changed
from clusters.systems.sim_bookkeeper.options import Protocol

if TYPE_CHECKING:
    from clusters.systems.sim_bookkeeper.messages import Meta
    from clusters.systems.sim_bookkeeper.setting import Setting


class Change:
    """A change that has begun.

    Attributes:
        wanted: The metadata after it.
        ensemble: The new ensemble.
    """

    def __init__(self, setting: Setting, term: int, meta: Meta, first: int, ensemble: tuple[str, ...]) -> None:
        """Begins a change.

        Args:
            setting: The setting.
            term: The term of the writer.
            meta: The metadata before it.
            first: The first entry that the new ensemble gets.
            ensemble: The new ensemble.
        """
        self.wanted = changed(meta, first, ensemble)
        self.ensemble = ensemble
        self._setting = setting
        self._term = term
        self._first = first
        options = setting.options
        cleans = options.protocol is Protocol.TERMS and options.clean_new_bookies
        present = meta.segments[-1].fragments[-1].bookies
        self._joining = {bookie for bookie in ensemble if cleans and bookie not in present}
        self._sent = 0

    @property
    def joining(self) -> frozenset[str]:
        """Returns the bookies that have not joined."""
        return frozenset(self._joining)

    @property
    def is_hopeless(self) -> bool:
        """Returns whether a new bookie does not answer."""
        return bool(self._joining) and self._sent > PATIENCE

    def send(self) -> None:
        """Asks the bookies that have not joined, or the metadata store."""
        self._sent += 1
        setting, wanted = self._setting, self.wanted
        if self._joining:
            join = messages.Join(setting.key, self._term, wanted.segments[-1].number, self._first, wanted.version)
            setting.to_bookies(sorted(self._joining), join)
        else:
            setting.host.send(setting.layout.metadata, messages.Put(setting.key, wanted))

    def joined(self, bookie: str, version: int) -> None:
        """Handles the answer of a bookie that has joined."""
        if version == self.wanted.version and bookie in self._joining:
            self._joining.discard(bookie)
            if not self._joining:
                self.send()

    def begin_again(self, meta: Meta) -> None:
        """Asks for the same change of newer metadata."""
        self.wanted = changed(meta, self._first, self.ensemble)
        self.send()
