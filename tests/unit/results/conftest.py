"""Made-up runs, made once for all tests of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from results.publish import announce, publish
from results.store import Store
from tests.unit.results.synthetic import record, write_history, write_logs

if TYPE_CHECKING:
    from pathlib import Path

    from results.record import RunRecord
    from results.store import Run


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
    """A finished run in a store of its own; read only."""
    store = Store(tmp_path_factory.mktemp("store"))
    run = store.create_run(stale_record.test.name, stale_record.test.started_utc)
    announce(run, stale_record.test)
    write_history(run, stale_record)
    write_logs(run)
    publish(run, stale_record)
    store.finish(run)
    return run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")
