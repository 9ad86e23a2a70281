"""Which nodes the final reads go through."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from harness.clock import run_virtual
from harness.final_reads import FinalReads, read_nodes
from harness.node import Node
from harness.phases import Phases

NODES = [Node(name=f"n{number}", address=f"192.0.2.{number}") for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("own", "through", "left_out"),
    [
        (False, ("n1", "n2", "n3"), {}),
        (True, ("n1", "n3"), {"n2": "stayed out: it is not connected to n1"}),
    ],
)
def test_what_a_node_that_stays_out_answers_from_its_own_state_is_no_read(
    own: bool, through: tuple[str, ...], left_out: dict[str, str]
) -> None:
    """Its state may be old, and nobody promises more. A node that answers for the group is read wherever it stands."""
    service = SimpleNamespace(nodes=NODES, reads_need_leader=False, reads_own_state=own, moves_leadership=False)

    async def read(node: Node) -> None:
        pass

    async def results() -> list[FinalReads]:
        reads = read_nodes(
            service,  # type: ignore[arg-type]
            read=read,
            stop=asyncio.Event(),
            lead_timeout_s=1.0,
            phases=Phases(),
            out={"n2": "is not connected to n1"},
        )
        return [result async for result in reads]

    assert run_virtual(results())[-1] == FinalReads(through=through, left_out=left_out)
