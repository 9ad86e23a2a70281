"""The options of the simulated BookKeeper."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from clusters.systems.sim_bookkeeper.bugs import TABLE, Bug
from harness.declare import Needs, option

LEAST_NODES: Final = 6


class Protocol(enum.StrEnum):
    """How a new writer stops the one before; see clusters/systems/sim_bookkeeper/README.md."""

    LEDGERS = "ledgers"
    TERMS = "terms"
    TERM_IDS = "term-ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimBookkeeperOptions:
    """How bookies, client nodes and the clients of Labrys are configured."""

    protocol: Protocol = option(
        Protocol.LEDGERS,
        "ledgers: a new writer fences and closes the ledger, and opens the next one. terms: one ledger for ever, fenced by a "
        "term. term-ids: the same, and the id of each entry has the term.",
        hunted=tuple(Protocol),
        needs=MappingProxyType(dict.fromkeys(Protocol, Needs(at_least={"nodes": LEAST_NODES}, plants=False))),
    )
    truncate: bool = option(
        default=True,
        help="With terms, a recovery ends with an entry without a value, which deletes all later entries of a bookie.",
    )
    guarantee_write_quorum: bool = option(
        default=True,
        help="With terms, the entries that a recovery writes must reach all bookies, not only the ack quorum.",
    )
    ack_quorum: int = option(
        2, "The number of bookies that must have an entry before it is acknowledged.", low=1, high=6
    )
    ensemble: int = option(
        0,
        "The number of bookies of an ensemble; 0: all. With more bookies than that, a client node replaces a bookie that does "
        "not answer an entry.",
        low=0,
        high=22,
    )
    clean_new_bookies: bool = option(
        default=True,
        help="With terms, a bookie that a writer takes into its ensemble first deletes its entries from there on.",
    )
    read_all: bool = option(
        default=False,
        help="A read asks all bookies of an ensemble at once, and not one after the other.",
    )
    retry_ms: int = option(
        200,
        "The time after which a client node repeats what nobody has answered.",
        low=1,
        high=60_000,
        hunted=(20, 50, 200, 1000),
    )
    answer_ms: int = option(
        1000,
        "The time that a client of Labrys waits for an answer.",
        low=1,
        high=60_000,
        hunted=(300, 1000, 4000),
    )
    takeover_every: int = option(
        10,
        "Each client of Labrys sends every n-th append to another client node than the writer, which then takes over; 0: none.",
        low=0,
        high=1_000_000,
        hunted=(2, 5, 20),
        shrinks_to=1,
    )
    bug: Bug = option(
        Bug.NONE,
        "The planted bug; clusters/systems/sim_bookkeeper/README.md describes them.",
        needs={bug: planted.needs for bug, planted in TABLE.items()},
    )
