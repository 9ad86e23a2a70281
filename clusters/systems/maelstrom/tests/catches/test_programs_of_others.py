"""Programs that others wrote, unmodified: the five examples of the crate maelstrom-node 0.1.6.

`echo_failure` is a program that fails, so it is a negative control. `broadcast` sends a message to each neighbour once, so a
partition loses it. The others stand the faults of their rows.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cli
from harness.console.documents import parse_json
from harness.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[5] / "build" / "maelstrom-node"
CRATE = ("maelstrom-node", "--version", "0.1.6")
BUILD_S = 1800
# The program, its workload, the number of nodes, the faults, and whether the part of its workload is valid.
PROGRAMS: Sequence[tuple[str, str, int, str, bool]] = [
    ("echo", "echo", 1, "kill", True),
    ("echo_failure", "echo", 1, "", False),
    ("broadcast", "broadcast", 3, "", True),
    ("broadcast", "broadcast", 3, "partition-random-halves", False),
    ("g_set", "g-set", 3, "partition-random-halves", True),
    ("lin_kv", "lin-kv", 3, "kill,pause,partition-random-halves", True),
]


@pytest.fixture(scope="module")
def folder() -> Path:
    """Returns the folder of the programs; builds them if they are not there."""
    if not (ROOT / "bin" / "lin_kv").exists():
        if shutil.which("cargo") is None:
            pytest.skip("needs cargo")
        ended = subprocess.run(
            ["cargo", "install", *CRATE, "--examples", "--root", str(ROOT)],
            capture_output=True, text=True, check=False, timeout=BUILD_S,
        )  # fmt: skip
        if ended.returncode:
            pytest.skip(f"cargo cannot install maelstrom-node: {ended.stderr[-200:]}")
    return ROOT / "bin"


@pytest.mark.night
@pytest.mark.parametrize("clock", [(), ("--virtual",)], ids=["real", "virtual"])
@pytest.mark.parametrize("row", PROGRAMS, ids=lambda row: f"{row[0]}-{row[3]}")
def test_an_example_of_the_crate_does_what_it_promises(
    folder: Path, row: tuple[str, str, int, str, bool], clock: Sequence[str], tmp_path: Path
) -> None:
    """All keep to the protocol. The part of the workload is as in the table."""
    program, workload, nodes, nemesis, valid = row
    with pytest.raises(SystemExit) as ended:
        cli.main(
            [
                "test", "--cluster", "pipes", *clock, "--system", "maelstrom", "--bin", str(folder / program), "--workload",
                workload, "--nodes", str(nodes), "--nemesis", nemesis, "--seed", "1", "--rate", "20", "--time-limit", "12",
                "--fault-on", "2-2", "--fault-off", "1-1", "--fault-quiet", "1-1", "--store", str(tmp_path),
            ]
        )  # fmt: skip
    (results,) = tmp_path.glob("*/2*/results.json")
    parts = parse_json(results.read_bytes(), str(results))["parts"]
    name = "linearizable" if workload == "lin-kv" else workload
    assert parts["protocol"]["valid"] is True, parts["protocol"]["reason"]
    assert parts[name]["valid"] is valid, parts[name]["reason"]
    assert (ended.value.code == ExitCode.INVALID) is not valid
