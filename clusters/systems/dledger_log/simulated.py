"""DLedger's log in the simulator: plain servers of the released jar in one JVM, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from clusters.sim.jvm.system import simulated
from clusters.systems.dledger.simulated import SimDLedgerNodes
from clusters.systems.dledger_log.system import DLedgerLogSystem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.traits import LogLine


class SimDLedgerLog(SimDLedgerNodes, DLedgerLogSystem):
    """Plain servers of the library, in the simulator."""

    log_lines: ClassVar[Mapping[str, LogLine]] = simulated(DLedgerLogSystem.log_lines)
