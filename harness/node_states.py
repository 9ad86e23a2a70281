"""The states of the nodes of a simulated cluster at one time, read from outside.

Only the simulator has them. Reading them sends no message, draws no random number and takes no time, so it does not change the
history of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.console.members import Integer, TimeNs, Whole  # noqa: TC001 - members are read by their annotations

RUNNING: Final = "running"
PAUSED: Final = "paused"
DEAD: Final = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEntry:
    """An entry in the log of a node.

    Attributes:
        index: Its index.
        term: Its term.
        text: Its operation, e.g. `write 166 on k1`.
    """

    index: Whole
    term: Whole
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """One node at one time. A value that the system does not have is None.

    Attributes:
        node: The node's name.
        process: `RUNNING`, `PAUSED` or `DEAD`.
        role: Its role, e.g. `leader`.
        term: Its term.
        last: The index of the last entry in its log.
        last_term: The term of that entry.
        committed: The last index that the node knows to be committed.
        value: The value of the key in its state machine, as text.
        entries: The entries on the key in its log, in order, without those that only a snapshot has.
    """

    node: str
    process: str
    role: str | None = None
    term: Integer | None = None
    last: Integer | None = None
    last_term: Integer | None = None
    committed: Integer | None = None
    value: str | None = None
    entries: tuple[HeldEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """All nodes at one time.

    Attributes:
        time_ns: The time, on the run's clock.
        nodes: The nodes, in their order.
    """

    time_ns: TimeNs
    nodes: tuple[NodeState, ...]
