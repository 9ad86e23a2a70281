"""Describes the network that a grudge leaves, as a text and as data for pictures.

The links that work in both directions form an undirected graph. Its components, articulation points and degrees describe a
partition. networkx computes them, and is imported only for a description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nemesis.grudges import hears, talks

if TYPE_CHECKING:
    from harness.op import Value
    from nemesis.grudges import Grudge


def describe(grudge: Grudge) -> dict[str, Value]:
    """Returns the topology that a grudge leaves, JSON-like.

    Returns:
        `sentence`; `components` (groups of nodes that reach each other, directly or over other nodes, largest first); `bridges`
        (the articulation points); `links` (pairs that work in both directions); `one_way` (pairs [from, to] that work in only
        this direction).
    """
    import networkx as nx  # noqa: PLC0415 - its import takes a tenth of a second

    nodes = list(grudge)
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((a, b) for a in nodes for b in talks(grudge, a) if a < b)
    one_way = sorted([a, b] for b in nodes for a in hears(grudge, b) - talks(grudge, b))
    components = sorted((sorted(component) for component in nx.connected_components(graph)), key=lambda c: (-len(c), c))
    bridges = sorted(nx.articulation_points(graph))
    return {
        "sentence": _sentence(grudge, components=components, one_way=one_way),
        "components": components,
        "bridges": bridges,
        "links": sorted(sorted(edge) for edge in graph.edges),
        "one_way": one_way,
    }


def _sentence(grudge: Grudge, *, components: list[list[str]], one_way: list[list[str]]) -> str:
    """Returns the components if each is fully connected; otherwise the neighbours of each node."""
    whole = all(talks(grudge, node) == frozenset(component) for component in components for node in component)
    if whole:
        text = " | ".join(" ".join(component) for component in components)
    else:
        text = "; ".join(f"{node} talks with {_others(grudge, node)}" for node in sorted(grudge))
    if one_way:
        text += "; one way only: " + ", ".join(f"{sender} to {receiver}" for sender, receiver in one_way)
    return text


def _others(grudge: Grudge, node: str) -> str:
    return " ".join(sorted(talks(grudge, node) - {node})) or "none"
