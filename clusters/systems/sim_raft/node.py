"""The simulated process of a Raft node. After an error of the disk it restarts from the disk, as it does after a kill."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clusters.systems.sim_raft.raft import Raft
from clusters.systems.sim_raft.storage import DamagedDiskError
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.host import Host
    from clusters.systems.sim_raft.options import SimRaftOptions

RESTART_DELAY_NS: Final = NS_PER_S


class RaftProcess:
    """A `clusters.sim.host.Process`. After an error of the disk it drops its memory, and restarts a second later."""

    def __init__(self, host: Host, options: SimRaftOptions, workload: str) -> None:
        self._host = host
        self._options = options
        self._workload = workload
        self._raft: Raft | None = None
        self._starts = 0

    @property
    def raft(self) -> Raft | None:
        """Returns the Raft node, so that others can inspect it; None while it does not take part."""
        return self._raft

    def start(self) -> None:
        """Reads the disk and starts the Raft node."""
        self._starts += 1
        try:
            self._raft = Raft(self._host, self._options, self._workload, partial(self._after, self._starts))
            self._raft.start()
        except DamagedDiskError as error:
            self._host.log(f"does not take part: {error}")
        except OSError as error:
            self._restart(error)

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message, if the node takes part."""
        if self._raft is not None:
            self._guarded(partial(self._raft.receive, sender, message))

    def _after(self, starts: int, delay_ns: int, action: Callable[[], None]) -> None:
        def due() -> None:
            if self._raft is not None and self._starts == starts:
                self._guarded(action)

        self._host.after(delay_ns, due)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            self._restart(error)

    def _restart(self, error: OSError) -> None:
        self._raft = None
        self._host.log(f"restarts in a second: {error}")
        self._host.after(RESTART_DELAY_NS, self.start)
