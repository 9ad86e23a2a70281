"""`explain.json`: the states of the nodes of a simulated run at the moments of its violation.

`labrys explain` writes the file, and the report reads it. A run's folder may come from anyone, so each member is checked and
has a maximum size.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, convert, to_builtins
from msgspec.structs import asdict

from harness.console.members import Integer, Seconds, Whole, read
from harness.node_states import ClusterState, HeldEntry, NodeState
from harness.units import NS_PER_S
from results.store.errors import BadRecord
from results.words.bounds import MAX_NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Value
    from results.store.store import Run

FORMAT: Final = "labrys-explain"
VERSION: Final = 1
FILE = "explain.json"
MAX_BYTES = 8 << 20
MAX_STATES = 40
MAX_ENTRIES = 50


class _Entry(Struct, frozen=True, kw_only=True):
    index: Whole
    term: Whole
    text: str


class _Node(Struct, frozen=True, kw_only=True):
    # Before the first entry, a log ends at -1 in DLedger and BookKeeper.
    node: str
    process: str
    role: str | None = None
    term: Integer | None = None
    last: Integer | None = None
    last_term: Integer | None = None
    committed: Integer | None = None
    value: str | None = None
    entries: list[_Entry] = []


class _State(Struct, frozen=True, kw_only=True):
    time_s: Seconds
    nodes: list[_Node]


class _States(Struct, frozen=True, kw_only=True):
    format: Literal["labrys-explain"]
    version: Literal[1]
    states: list[_State]


def states_document(states: Sequence[ClusterState]) -> dict[str, Value]:
    """Returns the document of `explain.json`."""
    shown = [
        _State(
            time_s=state.time_ns / NS_PER_S,
            nodes=[convert(_ended(node), _Node, from_attributes=True) for node in state.nodes],
        )
        for state in states
    ]
    document: dict[str, Value] = to_builtins(_States(format=FORMAT, version=VERSION, states=shown))
    return document


def _ended(node: NodeState) -> NodeState:
    """Returns a node with the end of its log."""
    return replace(node, entries=node.entries[-MAX_ENTRIES:])


def read_states(run: Run) -> tuple[ClusterState, ...]:
    """Reads the states of the nodes of a run; none if it has no `explain.json`.

    Raises:
        InputError: The file is malformed; the message names it.
    """
    path = run.path / FILE
    if not run.has(path):
        return ()
    try:
        stored = read(json.loads(run.read_bytes(path, MAX_BYTES)), _States, "", error=BadRecord)
    except (BadRecord, ValueError, RecursionError) as error:
        raise BadRecord(f"{path} cannot be used: {error}; `labrys explain` writes it again") from error
    return tuple(
        ClusterState(time_ns=round(state.time_s * NS_PER_S), nodes=tuple(map(_node, state.nodes[:MAX_NODES])))
        for state in stored.states[:MAX_STATES]
    )


def _node(stored: _Node) -> NodeState:
    entries = (HeldEntry(**asdict(entry)) for entry in stored.entries[-MAX_ENTRIES:])
    return NodeState(**{**asdict(stored), "entries": tuple(entries)})
