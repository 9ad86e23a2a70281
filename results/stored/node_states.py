"""`explain.json`: the states of the nodes of a simulated run at the moments of its violation.

`labrys explain` writes the file, and the report reads it. A run's folder may come from anyone, so each member is checked and
has a maximum size.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from harness.console.members import read, written
from harness.node_states import ClusterState, NodeState  # noqa: TC001 - members are read by their annotations
from results.store.errors import BadRecord
from results.words.bounds import MAX_NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Value
    from results.store.store import Run

FORMAT: Final = "labrys-explain"
VERSION: Final = 2
FILE = "explain.json"
MAX_BYTES = 8 << 20
MAX_STATES = 40
MAX_ENTRIES = 50


class _States(Struct, frozen=True, kw_only=True):
    format: Literal["labrys-explain"]
    version: Literal[2]
    states: list[ClusterState]


def states_document(states: Sequence[ClusterState]) -> dict[str, Value]:
    """Returns the document of `explain.json`."""
    shown = [replace(state, nodes=tuple(map(_ended, state.nodes))) for state in states]
    document: dict[str, Value] = written(_States(format=FORMAT, version=VERSION, states=shown))
    return document


def _ended(node: NodeState) -> NodeState:
    """Returns a node with the end of its log only."""
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
        replace(state, nodes=tuple(map(_ended, state.nodes[:MAX_NODES]))) for state in stored.states[:MAX_STATES]
    )
