"""Synthetic runs, made once for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from results.store.store import Store
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord
    from results.store.store import Run


@pytest.fixture(scope="session")
def valid_record() -> RunRecord:
    """A valid run with four faults."""
    return record(seed=7, operations=1500)


@pytest.fixture(scope="session")
def stale_record() -> RunRecord:
    """A run with a stale read and a fault that had no effect."""
    return record(seed=11, operations=1500, stale=True)


@pytest.fixture(scope="session")
def stored_run(stale_record: RunRecord, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run in its own store; read only."""
    return store_run(Store(tmp_path_factory.mktemp("store")), stale_record)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")
