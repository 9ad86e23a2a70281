"""What the nodes of a simulated cluster were and held at one moment, seen from outside, without asking them.

Only a simulator can look like that. A look sends no message, draws no random number and takes no time, so a run with looks has
the same history as one without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNNING: Final = "running"
PAUSED: Final = "paused"
DEAD: Final = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEntry:
    """An entry in the log of a node.

    Attributes:
        index: Its index.
        term: Its term.
        text: What it does, e.g. `write 166 on k1`.
    """

    index: int
    term: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLook:
    """One node at one moment. What a system cannot tell is None.

    Attributes:
        node: The node's name.
        process: `RUNNING`, `PAUSED` or `DEAD`.
        role: Its role, e.g. `leader`.
        term: Its term.
        last: The index of the last entry in its log.
        last_term: The term of that entry.
        committed: The last index that it knows to be committed.
        value: What its state machine holds for the key in question, as text.
        entries: The entries in its log that are about the key in question, in order; without those that only a snapshot has.
    """

    node: str
    process: str
    role: str | None = None
    term: int | None = None
    last: int | None = None
    last_term: int | None = None
    committed: int | None = None
    value: str | None = None
    entries: Sequence[HeldEntry] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All nodes at one moment.

    Attributes:
        time_ns: The moment, on the run's clock.
        nodes: The nodes, in their order.
    """

    time_ns: int
    nodes: Sequence[NodeLook]
