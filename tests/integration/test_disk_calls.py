"""A process of a real node stands still right after a step of its disk, and is killed there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "own_binary"
STORED: Final = '    snprintf(place(key), WORD, "%s", value);\n}\n'
# The log is written again in place, now and then. For a moment, it has less than was acknowledged.
COMPACTION: Final = """    snprintf(place(key), WORD, "%s", value);
    static int stores;
    if (++stores % 10 != 0) return;
    if (ftruncate(log_file, 0) != 0) end("ftruncate");
    for (int i = 0; i < used; i++) dprintf(log_file, "%s %s\\n", registers[i].key, registers[i].value);
    sync_log();
}
"""


def test_a_kill_right_after_a_call_shows_a_compaction_in_place(tmp_path: Path) -> None:
    """The kill comes between the truncation and the writes; the record says which call of which process it was."""
    shutil.copytree(EXAMPLE, tmp_path / "kv", ignore=shutil.ignore_patterns("store", "__pycache__"))
    source = tmp_path / "kv" / "kv.c"
    code = source.read_text()
    assert code.count(STORED) == 1
    source.write_text(code.replace(STORED, COMPACTION))
    faults = ("--nemesis", "kill:trigger", "--fault-trigger", "disk-step:truncate:log:2", "--fault-wait", "5")
    rhythm = ("--fault-on", "3", "--fault-off", "0.5", "--fault-quiet", "0.5-1.5", "--time-limit", "12")
    line = (
        sys.executable, "-m", "cli", "test", "--cluster", "local", "--nodes", "1", "--rate", "60", "--seed", "3",
        "--system", f"{tmp_path}/kv/system.py:OwnBinary", "--store", str(tmp_path / "store"), "--mix", "8:1:0",
        *faults, *rhythm,
    )  # fmt: skip
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280, check=False)
    (path,) = (tmp_path / "store").glob("*/2*/results.json")
    results = json.loads(path.read_text())
    (fault,) = results["faults"]
    assert fault["proof"]["effective"], done.stdout
    measured = fault["fired"]["measured"]
    assert {name: measured[name] for name in ("node", "step", "call", "file")} == {
        "node": "n1", "step": 2, "call": "truncate", "file": "log",
    }  # fmt: skip
    assert measured["pid"] in fault["details"]["pids"].values()
    assert results["parts"]["linearizable"]["valid"] is False, done.stdout
