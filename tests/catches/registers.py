"""A register service in memory and in virtual time, correct or with one planted bug; see `tests.catches.services`."""

from __future__ import annotations

import asyncio
import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.op import Fail, Ok
from tests.catches import services
from tests.catches.services import TIMEOUT_S, now_s

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.load import Load
    from harness.op import Invocation, Operation, Outcome, Value
    from harness.workload import Workload

__all__ = ["TIMEOUT_S", "Bug", "Service", "run"]


class Bug(enum.StrEnum):
    """The planted bugs."""

    STALE_READ = "stale read"  # a lagging node answers from its old state
    LOST_WRITE = "lost write"  # an acknowledged write never takes effect
    DIRTY_READ = "dirty read after fail"  # a refused write takes effect
    CAS_TWICE = "cas applied twice"  # a repeated request writes again, after other writes
    CAS_RACE = "cas not atomic"  # another write comes between the comparison and the write
    ROLLBACK = "rollback"  # a new leader lacks the acknowledged writes of the last second


# The probability of each bug; low enough that most operations are right.
RATES = MappingProxyType(
    {
        Bug.STALE_READ: 0.05,
        Bug.LOST_WRITE: 0.05,
        Bug.DIRTY_READ: 0.05,
        Bug.CAS_TWICE: 0.2,
        Bug.CAS_RACE: 1.0,  # without an effect unless another write comes in between
        Bug.ROLLBACK: 0.01,
    }
)


class Service(services.Service[Bug]):
    """Registers on some nodes."""

    def __init__(self, seed: int, bug: Bug | None) -> None:
        super().__init__(seed, bug, RATES)
        self._values: dict[str, Value] = {}
        self._log: list[tuple[float, str, Value]] = []

    def _write(self, key: str, value: Value) -> None:
        self._values[key] = value
        self._log.append((now_s(), key, value))

    async def apply(self, invocation: Invocation) -> Outcome:
        """Reads, writes, or compares and sets."""
        key, value = invocation.key or "", invocation.value
        if self.strikes(Bug.ROLLBACK):
            self._roll_back()
        if invocation.f == "read":
            return Ok(self._old(key) if self.strikes(Bug.STALE_READ) else self._values.get(key))
        if invocation.f == "cas":
            return await self._compare_and_set(key, value)
        if self.strikes(Bug.LOST_WRITE):
            return Ok(value)
        self._write(key, value)
        return Fail("not-leader") if self.strikes(Bug.DIRTY_READ) else Ok(value)

    async def _compare_and_set(self, key: str, value: list[Any]) -> Outcome:
        expected, new = value
        if self._values.get(key) != expected:
            return Fail("cas-mismatch")
        if self.strikes(Bug.CAS_RACE):
            await asyncio.sleep(0.02)
        self._write(key, new)
        if self.strikes(Bug.CAS_TWICE):

            async def again() -> None:
                await asyncio.sleep(0.2)
                self._write(key, new)

            self.start(again())
        return Ok(value)

    def _old(self, key: str) -> Value:
        """Returns the value on a node that lags by half a second."""
        horizon_s = now_s() - 0.5
        return next((value for time_s, name, value in reversed(self._log) if name == key and time_s < horizon_s), None)

    def _roll_back(self) -> None:
        horizon_s = now_s() - 1.0
        self._log = [entry for entry in self._log if entry[0] < horizon_s]
        self._values = {key: value for _, key, value in self._log}


def run(
    workload: Workload, *, seed: int, bug: Bug | None, load: Load, seconds: float, path: Path
) -> tuple[Service, Sequence[Operation]]:
    """Runs a workload against a service. Returns the service and the operations."""
    service = Service(seed, bug)
    return service, services.run(workload, service, seed=seed, load=load, seconds=seconds, path=path)
