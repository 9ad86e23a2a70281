"""Which node has which part: the last one is the metadata store, the two before it are client nodes, all others are bookies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from clusters.systems.sim_bookkeeper.messages import Fragment, Meta, Segment
from clusters.systems.sim_bookkeeper.options import LEAST_NODES, Protocol
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of the nodes.

    Attributes:
        bookies: The bookies.
        ensemble: The first ensemble of every log. Every entry goes to all of an ensemble, so it is the write quorum too.
        clients: The two client nodes. The first one is the writer at the beginning.
        metadata: The node with the metadata store.
    """

    bookies: tuple[str, ...]
    ensemble: tuple[str, ...]
    clients: tuple[str, ...]
    metadata: str

    @classmethod
    def of(cls, names: Sequence[str], ack_quorum: int, ensemble: int = 0) -> Self:
        """Returns the parts of these nodes.

        Args:
            names: The names of the nodes.
            ack_quorum: The number of bookies that must have an entry.
            ensemble: The number of bookies of an ensemble; 0: all.

        Raises:
            InputError: There are too few nodes, or the ensemble is smaller than the ack quorum.
        """
        if 0 < ensemble < ack_quorum:
            raise InputError(
                f"sim-bookkeeper with an ack quorum of {ack_quorum} needs an ensemble as large; found --ensemble {ensemble}; "
                f"choose --ensemble {ack_quorum} or more"
            )
        least = max(LEAST_NODES, ack_quorum + 3, ensemble + 3)
        if len(names) < least:
            raise InputError(
                f"sim-bookkeeper with an ack quorum of {ack_quorum} needs {least} nodes or more: a metadata store, two client "
                f"nodes, and bookies; found {len(names)}; choose --nodes {least}"
            )
        bookies = tuple(names[:-3])
        return cls(bookies, bookies[:ensemble] if ensemble else bookies, tuple(names[-3:-1]), names[-1])


def first_meta(layout: Layout, protocol: Protocol) -> Meta:
    """Returns the metadata of every log at the beginning: the first client node is its writer, in term 1."""
    number = 1 if protocol is Protocol.TERM_IDS else 0
    segment = Segment(number, 0, None, (Fragment(0, layout.ensemble),))
    return Meta(version=1, term=1, is_open=True, owner=layout.clients[0], segments=(segment,))
