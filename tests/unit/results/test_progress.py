"""The line of progress: what happened so far, with refusals apart."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from harness.op import Op, OpType
from results.progress import Progress


class Told:
    """A clock and a watch that always answer the same."""

    def now_s(self) -> float:
        """Returns the time."""
        return 7.0

    def leader(self) -> tuple[str, int]:
        """Returns who leads."""
        return "n3", 2


def test_refusals_are_counted_apart() -> None:
    """A follower that names the leader is no failure; one that knows no leader is."""
    errors = ["not-leader: n3 leads", "not-leader: n3 leads", "no-leader"]
    ops = [Op(n, n, OpType.FAIL, n, "read", error=error) for n, error in enumerate(errors)]
    ops.append(Op(3, 3, OpType.OK, 3, "read", 5))
    progress = Progress(console=Console(file=io.StringIO()), ops=ops, time_limit_s=60, refusals=["not-leader"])
    told: Any = Told()
    progress.workload_began(told, told)
    assert progress.line().plain == "    7 of 60 s   1 ok   1 fail   0 info   2 refused   leader n3 in term 2"
