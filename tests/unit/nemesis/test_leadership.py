"""A transfer of the leadership is proven by the reports of the nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.capabilities import NAMES, Capabilities
from harness.clock import run_virtual
from harness.declare import NoOptions
from harness.faults import PlannedFault, Proof
from harness.node import Node
from harness.service import NodeStatus
from harness.system import OneServiceSystem
from harness.targets import Named
from nemesis.conductor import Conductor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.cluster import Cluster
    from harness.daemon import Daemon
    from harness.system import System

NODES = tuple(Node(name=f"n{number}", address=f"192.0.2.{number}") for number in (1, 2))


class Reports(OneServiceSystem):
    """A system whose nodes report terms; after the transfer, n2 reports that it leads in `term`."""

    name = "reports"
    role = "reports"

    def __init__(self, first: int | None, term: int | None) -> None:
        super().__init__(cast("Cluster", SimpleNamespace(nodes=NODES)), NoOptions(), "none")
        self.first = first
        self.term = term
        self.asked = False

    def install(self, node: Node) -> None:
        """Has nothing to install."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
        """Has no clients."""
        raise NotImplementedError

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is ready at once."""

    def daemon(self, node: Node) -> Daemon:
        """Describes no process, which this kind does not need."""
        raise NotImplementedError

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """Accepts."""
        self.asked = True
        return True

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Reports n1 as the leader of the first term, which never steps down, and then n2 as well."""
        if node.name == "n1":
            leads = self.term is not None or not self.asked
            return (NodeStatus(node="n1", role="leader" if leads else "follower", term=self.first),)
        return (NodeStatus(node="n2", role="leader" if self.asked else "follower", term=self.term),)


@pytest.mark.parametrize(
    ("first", "term", "effective"),
    [(3, 4, True), (None, None, True), (3, 3, False), (3, 2, False)],
)
def test_the_new_leader_needs_a_later_term(first: int | None, term: int | None, *, effective: bool) -> None:
    """Two leaders of one term are no transfer, and neither is a leader of an earlier one; without terms, the report counts."""
    able = Capabilities(available=frozenset(NAMES))
    cluster = SimpleNamespace(nodes=NODES[::-1], capabilities=lambda: {"n1": able, "n2": able})
    conductor = Conductor(cluster=cast("Cluster", cluster), system=cast("System", Reports(first, term)))
    fault = PlannedFault(id=1, kind="leadership-transfer", target=Named(("n2",)), start_s=0.0, end_s=9.0)

    async def work() -> Proof:
        await conductor.begin(fault)
        return await conductor.prove(fault)

    assert run_virtual(work()).effective is effective
