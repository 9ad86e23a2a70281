"""A program that crashes is named with its signal and its last lines, on nodes and by seed; one that a fault ends is not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "own_binary"
STORE: Final = "static void store(const char *key, const char *value) {\n"
CRASH: Final = '    static int stores; if (++stores == 20) { say("bad page %d\\n", stores); *(volatile int *)0 = 1; }\n'


def ran(folder: Path, cluster: str, *words: str) -> tuple[str, dict[str, Any]]:
    """Runs the server, and returns what is printed, and the part about processes; empty without one."""
    system = f"{folder}/kv/system.py:OwnBinary"
    run: Sequence[str] = (
        sys.executable, "-m", "cli", "test", "--cluster", cluster, "--nodes", "1", "--system", system, "--rate", "20",
        "--seed", "3", "--store", str(folder / "store"), *words,
    )  # fmt: skip
    done = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280, check=False)
    results = list((folder / "store").glob("*/2*/results.json"))
    assert len(results) == 1, done.stdout
    parts = json.loads(results[0].read_text())["parts"]
    by_name = parts if isinstance(parts, dict) else {part["name"]: part for part in parts}
    return done.stdout, by_name.get("processes", {})


@pytest.mark.parametrize("cluster", ["local", "sim"])
def test_a_crash_is_named(cluster: str, tmp_path: Path) -> None:
    """With its role, node, time and signal, and the last lines of its log before the restart."""
    shutil.copytree(EXAMPLE, tmp_path / "kv", ignore=shutil.ignore_patterns("store", "__pycache__"))
    source = tmp_path / "kv" / "kv.c"
    code = source.read_text()
    assert STORE in code
    source.write_text(code.replace(STORE, STORE + CRASH))
    printed, part = ran(tmp_path, cluster, "--time-limit", "5", "--recovery-timeout", "2")
    assert "The process kv of n1 ended by itself by the signal SIGSEGV at " in printed
    (ended,) = part["details"]["ended"]
    assert 0.5 < ended["time_s"] < 5
    assert ended["lines"][-1] == "bad page 20"
    assert part["extra"] is True


@pytest.mark.parametrize("cluster", ["local", "sim"])
def test_what_a_fault_ended_is_not_named(cluster: str, tmp_path: Path) -> None:
    """Neither by a kill, nor by a loss of power, nor at the end of the run."""
    shutil.copytree(EXAMPLE, tmp_path / "kv", ignore=shutil.ignore_patterns("store", "__pycache__"))
    faults = (
        "--nemesis",
        "kill,power-loss",
        "--in-turn",
        "--fault-on",
        "1",
        "--fault-off",
        "1-2",
        "--fault-quiet",
        "1-2",
    )
    printed, part = ran(tmp_path, cluster, "--time-limit", "10", *faults)
    assert part == {}, printed
    assert "2 of 2 planned faults have a proven effect" in printed
