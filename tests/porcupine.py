"""Logs of porcupine's test data, which have no licence and are not in this repository: Jepsen's console in tests of etcd."""

from __future__ import annotations

from pathlib import Path
from typing import Final

LOGS: Final = sorted((Path(__file__).parents[2] / "shared" / "histories" / "etcd").glob("*.log"))
VALID: Final = frozenset({2, 5, 7, 18, 25, 31, 38, 45, 48, 49})  # their numbers
