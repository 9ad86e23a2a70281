"""System calls that fail in a simulated world."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, ClassVar, Final, cast

from harness.capabilities import SIMULATED_CALLS, SIMULATED_DISK
from harness.faults import Begun, Proof
from harness.units import NS_PER_S
from harness.world import LOAD, Failing
from nemesis.errors import FaultError
from nemesis.simulated.effect import Effect
from nemesis.simulated.machine import start_again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value
    from harness.world import CallWorld, Failed, World
    from nemesis.fault import Fault
    from nemesis.faults.disk_error import DiskError

PROVE_S: Final = 5.0
SILENT: Final = "sync"  # it returns nothing; see sync(2)
MEASURED: Final = 40  # the most calls of a node in the measurements


class FailingCalls(Effect):
    """`disk-error`."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_CALLS, SIMULATED_DISK})
    fault: DiskError
    world: CallWorld

    def __init__(self, fault: Fault, world: World) -> None:
        super().__init__(fault, world)
        self.world = cast("CallWorld", world)
        self._began_ns = 0
        self._again: list[str] = []

    @classmethod
    def remembers_syncs(cls, options: Mapping[str, Value]) -> bool:
        """Returns whether pages fail: those that no sync has written stay in memory."""
        return str(options["call"]) == LOAD

    async def begin(self) -> Begun:
        """Lets calls on every target fail from now on.

        Raises:
            FaultError: No target has a process with files.
        """
        options = self.fault.options
        rule = Failing(
            call=options["call"],
            pattern=options["file"],
            nth=options["nth"],
            times=options["times"],
            error=getattr(errno, options["error"]),
        )
        self._began_ns = self.world.now_ns
        hit = [name for name in self.targets if self.world.fail_calls(self.fault.id, name, self.fault.role, rule)]
        self.fault.problems.update({name: "no process has started" for name in self.targets if name not in hit})
        if not hit:
            raise FaultError(f"fault {self.fault.name}: no process has started on {', '.join(self.targets)}")
        return Begun(targets=self.targets, details={**options, "problems": dict(self.fault.problems)})

    async def prove(self) -> Proof:
        """Waits until a call on each target has failed."""

        async def failed() -> bool:
            return all(self._failures().values())

        await self.fault.field.until(failed, min(PROVE_S, self.fault.planned.lasts_s))
        return self._proof()

    async def again(self) -> Proof | None:
        """Looks no second time: each failure is an event, and `end` counts all."""
        return None

    async def end(self) -> Proof | None:
        """Lets no further call fail, and starts processes again that have ended because of the failures."""
        killed = self.fault.killed()
        self.world.mend(self.fault.id)
        self._again += start_again(self.fault, self.world, killed)
        return self._proof()

    def _failures(self) -> Mapping[str, Sequence[Failed]]:
        failures = self.world.failed_calls(self.fault.id)
        return {name: [failed for failed in failures if failed.node == name] for name in self.targets}

    def _told(self, failed: Failed) -> str:
        after_s = (failed.time_ns - self._began_ns) / NS_PER_S
        program = failed.program.rpartition("/")[2]
        if failed.call == LOAD:
            return f"page {failed.number} of {failed.file} by {program} got SIGBUS {after_s:.3f} s after the begin"
        error = self.fault.options["error"]
        how = f"met {error}, of which it does not tell," if failed.call == SILENT else f"returned {error}"
        return f"{failed.call} {failed.number} of {failed.file} by {program} {how} {after_s:.3f} s after the begin"

    def _proof(self) -> Proof:
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        measured: dict[str, Value] = {}
        for name, failures in self._failures().items():
            if name in self.fault.problems:
                continue
            measured[name] = {
                "failed": len(failures),
                "calls": [self._told(failure) for failure in failures[:MEASURED]],
            }
            if not failures:
                options = self.fault.options
                used_none = f"used no such page of {options['file']}"
                made_few = f"made fewer than {options['nth']} such calls on {options['file']}"
                bad[name] = used_none if options["call"] == LOAD else made_few
                continue
            more = f", and {len(failures) - 1} more failed" if len(failures) > 1 else ""
            ended = "; its process ended, and was started again" if name in self._again else ""
            good[name] = f"saw it: {self._told(failures[0])}{more}{ended}"
        return self.fault.shown(bad, good, measured)
