"""Random histories are judged by the crate adya too, and every order of their transactions decides where the verdicts differ.

The test builds adya from crates.io, unless the environment variable `ADYA` names the program.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.transactions.run import built_adya
from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from harness.verdict import Verdict
from tests.unit.checker.test_formats_transactions import edn
from tests.unit.checker.transaction_orders import any_order, is_serial, random_history

if TYPE_CHECKING:
    from pathlib import Path

HISTORIES: Final = 2_000
VERDICTS: Final = {0: Verdict.VALID, 1: Verdict.INVALID, 2: Verdict.UNKNOWN}  # by the exit code of adya
WORKLOAD: Final = "list-append"
MODEL: Final = "serializable"


@pytest.fixture(scope="module")
def adya(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the program of adya."""
    program = os.environ.get("ADYA") or built_adya(tmp_path_factory.mktemp("adya"))
    if program is None:
        pytest.skip(
            "adya cannot be built here: that needs cargo and crates.io; ADYA=PROGRAM names one that was built before"
        )
    return program


@pytest.mark.night
def test_where_adya_differs_every_order_agrees_with_labrys(adya: str, tmp_path: Path) -> None:
    """No history is invalid for adya and valid here. Where the verdicts differ, or both are invalid, the orders decide."""

    def verdicts(seed: int) -> tuple[int, Verdict, Verdict]:
        operations = random_history(Random(seed), most=7, lists=True)
        file = tmp_path / f"{seed}.edn"
        file.write_bytes(edn(operations))
        command = [adya, "check", "--json", "-m", WORKLOAD, "-c", MODEL, str(file)]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        file.unlink()
        ours = judge(of_operations(operations), workload=WORKLOAD, model=MODEL).verdict
        theirs = VERDICTS[done.returncode]
        if theirs is not ours or ours is Verdict.INVALID:
            assert is_serial(operations, any_order) is (ours is not Verdict.INVALID), (seed, theirs, ours)
        return seed, theirs, ours

    differ = 0
    with ThreadPoolExecutor(2) as pool:
        for seed, theirs, ours in pool.map(verdicts, range(HISTORIES)):
            assert not (theirs is Verdict.INVALID and ours is Verdict.VALID), seed
            differ += theirs is not ours
    assert 0 < differ < HISTORIES / 10
