"""The interface of a cluster: nodes, a remote shell on each, and their capabilities.

The nodes are namespaces on this machine, Vagrant's VMs, or the hosts of an inventory. A cluster does not depend on the system
that runs on it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from harness.blame import exit_of
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
        name: The cluster's name; several clusters can exist at the same time.
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
        """Returns the capabilities of each node by its name; probes them once."""
        ...

    def entered(self) -> AbstractContextManager[None]:
        """Moves the calling thread to a network namespace that reaches the nodes, until the context ends.

        Threads that start inside inherit the namespace. For clusters of other machines this does nothing.
        """
        ...

    def close(self) -> None:
        """Closes the shells. The nodes stay."""
        ...


class Paper:
    """Nodes that exist only by name, with unused addresses, so that a plan can be drawn before there is a cluster.

    It takes the place of a `Cluster`, and lacks the other methods.
    """

    name = "paper"

    def __init__(self, names: Sequence[str]) -> None:
        self.nodes = tuple(Node(name=name, address=f"192.0.2.{index}") for index, name in enumerate(names, 1))


def on_nodes(nodes: Sequence[Node], action: Callable[[Node], T]) -> dict[str, T | Exception]:
    """Runs `action` for all nodes at once, in a thread for each, and waits for all. In virtual time, the nodes come in order.

    Each action needs its own deadline. An exception on one node does not stop the others, and becomes the result of its node.

    Returns:
        Node name to result, or to the exception that `action` raised there, in the order of `nodes`.
    """

    def guarded(node: Node) -> T | Exception:
        try:
            return action(node)
        except Exception as error:  # noqa: BLE001 - the caller gets it
            return error
        except KeyboardInterrupt:
            raise
        except BaseException as end:  # noqa: BLE001 - `sys.exit` and the like; foreign code must not end Labrys
            return exit_of(end)

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
