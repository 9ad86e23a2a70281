"""For each check of the workload `ledger`, a bug of the simulated BookKeeper that breaks it in a running system.

The runs are those of `labrys hunt --system sim-bookkeeper --workload ledger OPTIONS --among KINDS --blind --seed 1`. Here only the
run is carried out that is known to find the bug. docs/sim-bookkeeper.md has the same table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.verdict import Verdict
from tests.catches.hunts import Hunt

PAGE = (Path(__file__).parents[2] / "docs" / "sim-bookkeeper.md").read_text(encoding="utf-8")
SYSTEM, SEED = "sim-bookkeeper", 1
SHORT = "--protocol ledgers --time-limit 4 --rate 20 --fault-on 0.1-0.6 --fault-off 0.1-0.5 --fault-quiet 0.1-0.5"
SPARES = f"--nodes 9 --ensemble 3 --retry-ms 100 {SHORT}"
CUTS = "packet-loss,partition-random-node"

# For the anomaly that the judge tells, or the other part of the verdict: the bug, further options, and the run that has it.
FINDS: dict[str, tuple[str, str, int]] = {}
CORRECT_RUNS = 2
