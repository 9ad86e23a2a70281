"""A node under test: its name, and its address in the cluster's own network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One of the machines n1..n5.

    Attributes:
        name: Unique in its cluster, e.g. `n1`.
        address: The address that nodes and clients use among themselves. Faults work on this one. It may differ from the
            endpoint that SSH uses.
    """

    name: str
    address: str
