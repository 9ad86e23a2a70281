"""The progress line: the counts so far, with refusals apart."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.op import Op, OpType
from results.live.progress import Progress
from results.live.tail import run_state
from results.measure.op_outcomes import Codes
from results.store.store import Run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Told:
    """A clock and a watch with constant answers."""

    def now_s(self) -> float:
        """Returns the time."""
        return 7.0

    def leader(self) -> tuple[str, int]:
        """Returns the leader."""
        return "n3", 2


def test_refusals_are_counted_apart() -> None:
    """An answer that names the leader is not a failure. An answer without a leader is."""
    errors = ["not-leader: n3 leads", "not-leader: n3 leads", "no-leader"]
    ops = [Op(n, n, OpType.FAIL, n, "read", error=error) for n, error in enumerate(errors)]
    ops.append(Op(3, 3, OpType.OK, 3, "read", 5))
    progress = Progress(
        console=Console(file=io.StringIO()), ops=ops, time_limit_s=60, codes=Codes(refusals={"not-leader"})
    )
    fake: Any = Told()
    progress.workload_began(fake, fake)
    assert progress.line().plain == "    7 of 60 s   1 ok   1 fail   0 info   2 refused   leader n3 in term 2"


def test_a_run_says_who_leads_while_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`live.json` has its phase and its leader until the run ends."""
    monkeypatch.setattr("results.live.progress.LIVE_FILE_INTERVAL_S", 0.01)
    run = Run(tmp_path)
    fake: Any = Told()
    with Progress(console=Console(file=io.StringIO()), ops=[], time_limit_s=60, codes=Codes(), folder=run) as progress:
        progress.phase("workload")
        progress.workload_began(fake, fake)
        deadline_s = time.monotonic() + 20
        while run_state(run)["leader"] is None:
            assert time.monotonic() < deadline_s
        assert run_state(run) == {"phase": "workload", "leader": "n3", "term": 2}
    assert not run.live_json.exists()
