"""Runs of hostile programs for Maelstrom, and what must be so after each of them.

A program can make its run invalid or unknown. It must not take the verdict, hold up the end, fill the memory, leave a process
or a file behind, touch files of others, or write to the terminal or the page.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.fuzz.hostile_node import MARKUP

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from benchmarks.fuzz.law import Outcome

PROGRAM: Final = Path(__file__).with_name("hostile_node.py")
MARKER: Final = "LABRYS_FUZZ"  # the variable of all processes of a run
CODES: Final = frozenset({0, 1, 2, 255})  # 255: the nodes could not be started
WORKLOADS: Final = (
    "echo", "unique-ids", "broadcast", "g-set", "g-counter", "lin-kv", "kafka", "txn-list-append", "txn-rw-register",
)  # fmt: skip
FAULTS: Final = ("", "", "kill", "pause", "wipe", "partition-random-halves")
REAL_SHARE: Final = 0.1
GONE_S: Final = 3.0


def arguments(rng: Random, folder: Path, acts: Sequence[str] = ()) -> list[str]:
    """Fills a folder, and returns the words after `labrys` of a run in it.

    Args:
        rng: Draws the run.
        folder: The folder.
        acts: The names of the acts of the program; the seed draws them if there are none.
    """
    (folder / "victim").mkdir()
    (folder / "victim" / "file").write_text("of others")
    nemesis = rng.choice(FAULTS)
    count = rng.choice((2, 3) if "partition" in nemesis else (1, 2, 3))
    command = " ".join((sys.executable, str(PROGRAM), str(rng.getrandbits(32)), *acts))
    return [
        "test", "--cluster", "pipes", "--system", "maelstrom", "--bin", command, "--workload", rng.choice(WORKLOADS),
        "--nodes", str(count), "--seed", str(rng.randrange(1000)), "--store", "store", "--name", "run",
        *([] if rng.random() < REAL_SHARE else ["--virtual"]), "--nemesis", nemesis,
        "--time-limit", "1.5", "--rate", "20" , "--fault-on", "0.2-0.3", "--fault-off", "0.1-0.2",
        "--fault-quiet", "0.1-0.1",
        "--quiet", "0.2", "--operation-timeout", "1", "--recovery-timeout", "2", "--final-reads-timeout", "2",
    ]  # fmt: skip


def broken(outcome: Outcome, folder: Path, *, raw: bool = True) -> str | None:
    """Returns how a run breaks the rules; None if it does not.

    Args:
        outcome: What the command did.
        folder: Its folder.
        raw: Whether raw terminal control characters break the rules.
    """
    return outcome.broken(raw=raw, codes=CODES) or left(folder) or lost(folder, outcome.status)


def left(folder: Path) -> str | None:
    """Returns what a run left behind, or took; None if there is nothing."""
    deadline_s = time.monotonic() + GONE_S
    while pids := _marked(folder):
        if time.monotonic() > deadline_s:
            return f"left processes: {pids}"
        time.sleep(0.05)
    files = sorted(path.name for path in (folder / "tmp").iterdir()) if (folder / "tmp").exists() else []
    if files:
        return f"left files: {files}"
    if [path.read_text() for path in (folder / "victim").iterdir()] != ["of others"]:
        return "touched files of others"
    return None


def lost(folder: Path, status: int) -> str | None:
    """Returns what is wrong with the run that a command left in the store; None if nothing is."""
    runs = list((folder / "store" / "run").glob("2*"))
    histories = [path for path in (run / "history.jsonl" for run in runs) if path.exists()]
    began = any(path.read_bytes().count(b"\n") > 1 for path in histories)  # the first line is the header
    if status == 255:
        return "operations without a verdict" if began else None
    if len(runs) != 1:
        return f"{len(runs)} runs"
    (run,) = runs
    valid = json.loads((run / "results.json").read_bytes())["valid"]
    if {True: 0, False: 1, "unknown": 2}.get(valid) != status:
        return f"the exit code is {status}, and the verdict {valid}"
    if MARKUP[:20] in (run / "report.html").read_text(encoding="utf-8"):
        return "markup of the program in the report"
    return None


def _marked(folder: Path) -> list[int]:
    """Returns the processes of a run."""
    marker, pids = f"{MARKER}={folder}\0".encode(), []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                environment = (path / "environ").read_bytes()
            except OSError:
                continue
            if marker in environment + b"\0":
                pids.append(int(path.name))
    return pids
