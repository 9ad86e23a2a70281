"""Systems as they are released in virtual time, beside the same run on nodes of this machine.

`python -m benchmarks linux [--seconds 20] [--runs 3] [--simulated]`: for each system, virtual seconds for a second on one core,
from the start of the nodes to the end of the final reads. A run on nodes takes one second for a second, so its column is the
time of the same phases. `--simulated` leaves the nodes out; they need root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SYSTEMS = {
    "redis": (),
    "etcd": (),
    "zookeeper": (),
    "dledger": ("--carrier", "programs"),
}
PHASES = ("start", "workload", "recover", "final reads")
NS = 1e9


def carried_out(system: str, seed: int, words: tuple[str, ...]) -> dict[str, Any]:
    """Carries out a run, and returns its `results.json`."""
    with tempfile.TemporaryDirectory(prefix="labrys-") as store:
        subprocess.run(
            [
                sys.executable, "-m", "cli", "test", "--system", system, "--nodes", "3", "--rate", "10", "--seed", str(seed),
                *words, "--store", store,
            ],
            check=True,
            capture_output=True,
        )  # fmt: skip
        (path,) = Path(store).glob("*/2*/results.json")
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document


def real_s(results: dict[str, Any]) -> float:
    """Returns the real time of the phases in which the nodes run."""
    phases = [phase for phase in results["phases"] if phase["name"] in PHASES and phase["node"] is None]
    return float(sum(phase["end_s"] - phase["start_s"] for phase in phases))


def main() -> None:
    """Prints a row for each system."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20, help="virtual seconds of the workload")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--simulated", action="store_true", help="leave out the runs on nodes")
    options = parser.parse_args()
    limit = ("--time-limit", str(options.seconds))
    print(f"| {'system':<10} | virtual s a second | runs | calls | run on nodes | ratio of the times |")
    print("|---|---|---|---|---|---|")
    for system, words in SYSTEMS.items():
        runs = [carried_out(system, seed, ("--cluster", "sim", *words, *limit)) for seed in range(1, options.runs + 1)]
        speeds = [run["execution"]["figures"]["time"] / NS / real_s(run) for run in runs]
        calls = statistics.median(run["execution"]["figures"]["calls"] for run in runs)
        peer, ratio = "-", "-"
        if not options.simulated:
            on_nodes_s = real_s(carried_out(system, 1, limit))
            peer, ratio = f"{on_nodes_s:.1f} s", f"{on_nodes_s / real_s(runs[0]):.1f}"
        speed = f"{statistics.median(speeds):.1f} ({min(speeds):.1f} to {max(speeds):.1f})"
        print(f"| {system:<10} | {speed} | {len(runs)} | {calls:,.0f} | {peer} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
