"""What a cluster gives a run: nodes, a remote shell on each, and what their kernels can do.

A cluster is where nodes come from (namespaces on this machine, Vagrant's VMs, an inventory of hosts). It knows nothing
about the system that runs on them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from harness.clock import in_virtual_time
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from harness.capabilities import Capabilities
    from harness.remote import Remote

T = TypeVar("T")


class Cluster(Protocol):
    """A set of reachable nodes.

    Attributes:
        name: The cluster's name; several can live side by side.
    """

    name: str

    @property
    def nodes(self) -> Sequence[Node]:
        """Returns the nodes, in the order of their names."""
        ...

    def remote(self, node: Node) -> Remote:
        """Returns the shell on `node`; the same object each time, safe to use from several threads."""
        ...

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Probes (once) what each node can do, by node name."""
        ...

    def entered(self) -> AbstractContextManager[None]:
        """Puts the calling thread where the nodes' addresses can be reached, until the context ends.

        Threads started inside inherit the place. For clusters of other machines this does nothing.
        """
        ...

    def close(self) -> None:
        """Closes the shells. The nodes stay."""
        ...


class Paper:
    """Nodes on paper: they have names, and addresses that nobody has. A plan is drawn with them before there are any.

    It stands in for a `Cluster`, whose other methods it lacks.
    """

    name = "paper"

    def __init__(self, names: Sequence[str]) -> None:
        self.nodes = tuple(Node(name=name, address=f"192.0.2.{place}") for place, name in enumerate(names, 1))


def on_nodes(nodes: Sequence[Node], action: Callable[[Node], T]) -> dict[str, T | Exception]:
    """Runs `action` for every node at once, a thread each, and waits for all. In virtual time it runs for one after the other.

    The actions bring their own deadlines. An exception on one node does not stop the others and is returned in its place.

    Returns:
        Node name to result, or to the exception that `action` raised there, in the order of `nodes`.
    """

    def guarded(node: Node) -> T | Exception:
        try:
            return action(node)
        except Exception as error:  # noqa: BLE001 - handed to the caller, who decides per node
            return error

    if not nodes:
        return {}
    if in_virtual_time():
        return {node.name: guarded(node) for node in nodes}
    with ThreadPoolExecutor(max_workers=len(nodes), thread_name_prefix="node") as pool:
        return dict(zip((node.name for node in nodes), pool.map(guarded, nodes), strict=True))


def on_all(nodes: Sequence[Node], action: Callable[[Node], T]) -> dict[str, T]:
    """Like `on_nodes`, but raises the first exception, after all nodes have ended, with the others as notes."""
    results = on_nodes(nodes, action)
    failures = {name: result for name, result in results.items() if isinstance(result, Exception)}
    if failures:
        (first, error), *others = failures.items()
        for name, other in others:
            error.add_note(f"also on {name}: {other}")
        error.add_note(f"while acting on {first} of {len(nodes)} nodes")
        raise error
    return {name: result for name, result in results.items() if not isinstance(result, Exception)}
