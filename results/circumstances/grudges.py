"""Who hears whom during a cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import FaultRecord


def grudge_of(fault: FaultRecord) -> Mapping[str, Sequence[str]] | None:
    """Returns the fault's grudge, node to the nodes whose packets it drops; None if it has none."""
    for source in (fault.details, fault.planned.options):
        grudge = source.get("grudge")
        if isinstance(grudge, dict) and all(isinstance(dropped, list | tuple) for dropped in grudge.values()):
            return {str(node): [str(name) for name in dropped] for node, dropped in grudge.items()}
    return None


def groups(nodes: Sequence[str], grudge: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Returns the groups of nodes that can communicate both ways, perhaps over other nodes, in the order of `nodes`."""
    left = list(nodes)
    blocks = []
    while left:
        group, todo = [], [left[0]]
        while todo:
            node = todo.pop()
            if node in left:
                left.remove(node)
                group.append(node)
                todo += [other for other in left if hears(grudge, node, other) and hears(grudge, other, node)]
        blocks.append(sorted(group, key=list(nodes).index))
    return blocks


def hears(grudge: Mapping[str, Sequence[str]], listener: str, speaker: str) -> bool:
    """Returns whether packets of `speaker` reach `listener`."""
    return speaker not in grudge.get(listener, ())
