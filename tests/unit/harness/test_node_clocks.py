"""The clock of a node is compared with that of the control node, with the uncertainty of the question."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import NodeError
from harness.node import Node
from harness.node_clocks import NodeClock, as_logged, read_clocks
from harness.process_clock import LogClock

if TYPE_CHECKING:
    from collections.abc import Callable

NODES = (Node(name="n1", address="10.0.0.1"), Node(name="n2", address="10.0.0.2"))


def read(answers: dict[str, Callable[[], str]]) -> tuple[dict[str, NodeClock], dict[str, str]]:
    """Reads the clocks of two nodes that answer with these texts."""

    def remote(node: Node) -> Any:
        return SimpleNamespace(run=lambda command, **_: SimpleNamespace(stdout=answers[node.name]()))

    cluster: Any = SimpleNamespace(remote=remote)
    return read_clocks(cluster, NODES)


def test_a_clock_that_is_ahead_is_measured() -> None:
    """A zone is in seconds east of UTC. A node with the same clock has no offset beyond the uncertainty."""

    def now(ahead_s: int, zone: str) -> str:
        seconds, nanos = divmod(time.time_ns(), 10**9)
        return f"{seconds + ahead_s}.{nanos:09d} {zone}\n"

    clocks, unknown = read({"n1": lambda: now(7, "-0330"), "n2": lambda: now(0, "+0200")})
    assert unknown == {}
    assert abs(clocks["n1"].ahead_ns - 7 * 10**9) <= clocks["n1"].uncertain_ns
    assert (clocks["n1"].zone_s, clocks["n2"].zone_s) == (-12_600, 7_200)
    assert clocks["n2"].ahead_ns == 0


@pytest.mark.parametrize("answer", ["", "soon", "1767225600.1 +0000", "1767225600.123456789", "9" * 400])
def test_a_node_that_tells_no_time_has_a_reason(answer: str) -> None:
    """Neither a wrong answer nor a lost node ends the run."""

    def lost() -> str:
        raise NodeError("n2", "no route to host")

    clocks, unknown = read({"n1": lambda: answer, "n2": lost})
    assert clocks == {}
    assert unknown["n1"].startswith("expected a time such as 1767225600.123456789 +0000")
    assert "no route to host" in unknown["n2"]


def test_a_log_may_have_another_zone_than_its_node() -> None:
    """Some software writes the time of one zone wherever it runs; a node whose processes say nothing keeps its own zone."""
    clock = NodeClock(offset_ns=5, uncertain_ns=1, zone_s=0)
    east = LogClock(path="/l", pattern="(.{19}) ", form="%Y-%m-%d %H:%M:%S", resolution_s=1.0, utc_offset_s=28_800)
    own = replace(east, utc_offset_s=None)
    of: Any = {
        "n1": [SimpleNamespace(log_clock=log_clock) for log_clock in (None, own, east)],
        "n2": [SimpleNamespace(log_clock=own)],
    }
    logged = as_logged({"n1": clock, "n2": clock}, NODES, lambda node: of[node.name])
    assert logged == {"n1": replace(clock, zone_s=28_800), "n2": clock}
    assert as_logged({}, NODES, lambda node: of[node.name]) == {}
