"""Fences of real bookies: the first request for each ledger in their logs, with its age and its sender."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING, Any, cast

from clusters.systems.bookkeeper import fences as module
from clusters.systems.bookkeeper.fences import Fences
from harness.errors import CommandFailed
from harness.node import Node
from harness.remote.protocol import Result

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from harness.system import System

CLASS = "org.apache.bookkeeper.proto.ReadEntryProcessorV3"
LINE = f"[BookieReadThreadPool] INFO {CLASS} - Ledger fence request received for ledger: "
NODES = [Node(name=f"n{number}", address=f"10.0.0.{number}") for number in (1, 2, 3, 4)]


class Shell:
    """A node whose commands run here, at the same time of the clock, on its log in a folder."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def run(self, command: str, *, timeout_s: float) -> Result:
        """Runs a command line."""
        here = command.replace("/LOG", str(self._log)).replace("date +%s.%N", "echo 1795780810.250000000")
        done = subprocess.run(["sh", "-c", here], capture_output=True, text=True, timeout=timeout_s, check=False)
        if done.returncode:
            raise CommandFailed(self._log.name, command, done.returncode, done.stderr)
        return Result(node=self._log.name, command=command, status=0, stdout=done.stdout, stderr=done.stderr)


class Shells:
    """A system, and the cluster with its nodes; one without a log in the folder has none."""

    nodes = NODES

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.asked: list[str] = []

    @property
    def cluster(self) -> Shells:
        """Returns the nodes."""
        return self

    def tool(self, node: Node, command: str, *, timeout_s: float) -> Result:
        """Runs a command line on a node."""
        self.asked.append(node.name)
        return Shell(self._folder / node.name).run(command, timeout_s=timeout_s)


def test_the_first_request_of_each_ledger_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """n1 was asked twice about ledger 4, by n4 first; n2's log has a line that nobody understands."""
    stamp = "2026-11-27T12:00:0{}.250+0000 "
    lines = [
        f"{stamp.format(1)}{LINE}7 from address: /10.0.0.9:4000",
        f"{stamp.format(2)}[main] INFO something else",
        f"{stamp.format(3)}{LINE}4 from address: /10.0.0.4:4001",
        f"{stamp.format(5)}{LINE}4 from address: /10.0.0.3:4002",
    ]
    (tmp_path / "n1").write_text("\n".join(lines) + "\n")
    (tmp_path / "n2").write_text(f"soon {LINE}4 from address: /10.0.0.4:4001\n")
    monkeypatch.setattr(module, "log_of", lambda _: "/LOG")
    shells = Shells(tmp_path)
    fences = Fences(cast("System", shells), NODES[:3])

    async def all_of_it() -> list[Any]:
        return [await fences.of(ledger) for ledger in (4, 7, 5)]

    (four, unread), (seven, _), (five, _) = asyncio.run(all_of_it())
    assert unread == ["n2", "n3"]
    assert [(bookie, by) for bookie, _, by in four] == [("n1", "n4")]
    assert [(bookie, by) for bookie, _, by in seven] == [("n1", "10.0.0.9")]
    assert 7000 <= four[0][1] < 9000 <= seven[0][1] < 11_000
    assert five == []
    assert sorted(shells.asked) == ["n1", "n2", "n3"]
