"""`explain.json`: the states of the nodes of a simulated run at the moments of its violation.

`labrys explain` writes the file, and the report reads it. A run's folder may come from anyone, so each member is checked and
has a maximum size.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.node_states import ClusterState, HeldEntry, NodeState
from harness.units import NS_PER_S
from results.page.bounds import MAX_NODES
from results.store import members as must
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Value
    from results.store.store import Run

FORMAT = "labrys-explain"
VERSION = 1
FILE = "explain.json"
MAX_BYTES = 8 << 20
MAX_STATES = 40
MAX_ENTRIES = 50


def states_document(states: Sequence[ClusterState]) -> dict[str, Value]:
    """Returns the document of `explain.json`."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "states": [
            {"time_s": state.time_ns / NS_PER_S, "nodes": [_node_document(node) for node in state.nodes]}
            for state in states
        ],
    }


def _node_document(node: NodeState) -> dict[str, Value]:
    return {
        "node": node.node,
        "process": node.process,
        "role": node.role,
        "term": node.term,
        "last": node.last,
        "last_term": node.last_term,
        "committed": node.committed,
        "value": node.value,
        "entries": [
            {"index": entry.index, "term": entry.term, "text": entry.text} for entry in node.entries[-MAX_ENTRIES:]
        ],
    }


def read_states(run: Run) -> tuple[ClusterState, ...]:
    """Reads the states of the nodes of a run; none if it has no `explain.json`.

    Raises:
        InputError: The file is malformed; the message names it.
    """
    path = run.path / FILE
    if not run.has(path):
        return ()
    try:
        return _states(must.mapping(json.loads(run.read_bytes(path, MAX_BYTES)), "the document"))
    except (BadRecord, ValueError, RecursionError) as error:
        raise BadRecord(f"{path} cannot be used: {error}; `labrys explain` writes it again") from error


def _states(document: dict[str, Value]) -> tuple[ClusterState, ...]:
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise BadRecord(f'expected "format": "{FORMAT}" and version {VERSION}')
    listed = must.listed(must.member(document, "states"), "states")
    return tuple(_state(must.mapping(each, "states")) for each in listed[:MAX_STATES])


def _state(state: dict[str, Value]) -> ClusterState:
    nodes = must.listed(must.member(state, "nodes"), "nodes")[:MAX_NODES]
    return ClusterState(
        time_ns=must.nanoseconds(must.member(state, "time_s"), "time_s"),
        nodes=tuple(_node(must.mapping(each, "nodes")) for each in nodes),
    )


def _node(node: dict[str, Value]) -> NodeState:
    def number(name: str) -> int | None:
        value = node.get(name)
        return None if value is None else must.whole(value, name)

    entries = [must.mapping(each, "entries") for each in must.listed(node.get("entries", []), "entries")[-MAX_ENTRIES:]]
    return NodeState(
        node=must.text(must.member(node, "node"), "node"),
        process=must.text(must.member(node, "process"), "process"),
        role=must.text_or_none(node.get("role"), "role"),
        term=number("term"),
        last=number("last"),
        last_term=number("last_term"),
        committed=number("committed"),
        value=must.text_or_none(node.get("value"), "value"),
        entries=tuple(
            HeldEntry(
                index=must.whole(must.member(entry, "index"), "index"),
                term=must.whole(must.member(entry, "term"), "term"),
                text=must.text(must.member(entry, "text"), "text"),
            )
            for entry in entries
        ),
    )
