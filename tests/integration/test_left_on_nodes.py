"""What a system's code leaves on a node ends with a run of its own cluster, and stays on a shared one until `cluster down`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.integration, pytest.mark.timeout(200)]
ROOT: Final = Path(__file__).parents[2]
SYSTEM: Final = """
from examples.own_binary.system import OwnBinary

class Leaves(OwnBinary):
    name = "leaves"

    def start(self, node, role=None):
        self.cluster.remote(node).run("setsid sh -c 'setsid sleep {seconds} & exit' </dev/null >/dev/null 2>&1 &")
        super().start(node, role)
"""


def labrys(folder: Path, *words: str) -> str:
    """Carries out a command, and returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words], cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90, check=False,
    )  # fmt: skip
    return done.stdout


def running(seconds: int) -> list[str]:
    """Returns the processes that were left."""
    words = ["pgrep", "-xf", f"sleep {seconds}"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()


@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "shared"])
def test_a_process_that_left_its_parent(is_shared: bool, tmp_path: Path) -> None:
    """As docs/guide/clusters.md says it."""
    seconds, name = 4600 + is_shared, f"left{os.getpid() % 1000}"
    (tmp_path / "leaves.py").write_text(SYSTEM.format(seconds=seconds))
    run: Sequence[str] = (
        "test", "--cluster", "local", "--nodes", "1", "--system", "leaves.py:Leaves", "--workload", "register",
        "--time-limit", "2", "--rate", "10", "--seed", "1",
    )  # fmt: skip
    if not is_shared:
        printed = labrys(tmp_path, *run)
        assert "the code of leaves left process" in printed
        assert f"(`sleep {seconds}`) on this machine; Labrys has ended it" in printed
        assert running(seconds) == []
        return
    assert "10.55." in labrys(tmp_path, "cluster", "up", name, "--nodes", "1")
    try:
        printed = labrys(tmp_path, *run, "--cluster-name", name)
        assert "left process" not in printed
        assert "✓ valid" in printed
        assert len(running(seconds)) == 1
    finally:
        labrys(tmp_path, "cluster", "down", name)
    assert running(seconds) == []
