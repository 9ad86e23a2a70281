"""The neighbours of each node, as the workload broadcast tells them. Source: Maelstrom's doc/workloads.md."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.systems.maelstrom.options import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BRANCHES: Final[Mapping[Topology, int]] = MappingProxyType({Topology.TREE: 2, Topology.TREE3: 3, Topology.TREE4: 4})


def of(topology: Topology, names: Sequence[str]) -> dict[str, list[str]]:
    """Returns the neighbours of each node, in the order of the nodes. Neighbours are mutual."""
    count = len(names)
    if topology is Topology.TOTAL:
        pairs = {(a, b) for a in range(count) for b in range(count) if a != b}
    elif topology is Topology.LINE:
        pairs = {(place, place + 1) for place in range(count - 1)}
    elif topology in BRANCHES:
        pairs = {((place - 1) // BRANCHES[topology], place) for place in range(1, count)}
    else:
        width = math.ceil(math.sqrt(count))
        pairs = {(place, place + 1) for place in range(count - 1) if (place + 1) % width}
        pairs |= {(place, place + width) for place in range(count - width)}
    both = pairs | {(b, a) for a, b in pairs}
    return {name: [names[b] for b in range(count) if (place, b) in both] for place, name in enumerate(names)}
