"""What Redis promises: locks end by their lease only, and a power loss may take writes."""

from __future__ import annotations

import pytest

from clusters.systems.redis.options import Fsync, RedisOptions
from clusters.systems.redis.promises import promises
from harness.errors import InputError
from tests.trials import settled_by


def test_what_cannot_work_is_refused_before_anything_starts() -> None:
    """With the options to give; no cluster was opened."""
    advice = "give --no-sessions, and --lease-s or --ops-per-lock"
    with pytest.raises(InputError, match=advice), settled_by("--system", "redis", "--workload", "lock", "--sessions"):
        pass


@pytest.mark.parametrize("fsync", Fsync)
def test_a_power_loss_takes_acknowledged_writes_unless_each_is_synced(fsync: Fsync) -> None:
    """A run without a failover is invalid for that too, and its first lines say so."""
    for promise in promises(RedisOptions(fsync=fsync)).values():
        assert ("a power loss" in promise.sentence) == (fsync is not Fsync.ALWAYS)
