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
        pairs = {(index, index + 1) for index in range(count - 1)}
    elif topology in BRANCHES:
        pairs = {((index - 1) // BRANCHES[topology], index) for index in range(1, count)}
    else:
        width = math.ceil(math.sqrt(count))
        pairs = {(index, index + 1) for index in range(count - 1) if (index + 1) % width}
        pairs |= {(index, index + width) for index in range(count - width)}
    both = pairs | {(b, a) for a, b in pairs}
    return {name: [names[b] for b in range(count) if (index, b) in both] for index, name in enumerate(names)}
