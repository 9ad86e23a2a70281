"""Killed and paused processes, lost power and damaged files in a simulated world."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import SIMULATED_DISK, SIMULATED_FILES, SIMULATED_POWER
from harness.errors import NodeError
from harness.faults import Begun, Proof
from nemesis.errors import FaultError
from nemesis.evidence import STOPPED
from nemesis.fault import brief
from nemesis.simulated.effect import Effect

if TYPE_CHECKING:
    from harness.op import Value
    from harness.world import Lost, World
    from nemesis.fault import Fault
    from nemesis.faults.disk import PowerLoss
    from nemesis.faults.files import FileFault, RollBack
    from nemesis.faults.succession import KillLeaders


class Killed(Effect):
    """`kill`, its variants by target, and `crash`, since a simulated disk has no page cache."""

    def __init__(self, fault: Fault, world: World) -> None:
        super().__init__(fault, world)
        self.before: dict[str, int | None] = {}

    async def begin(self) -> Begun:
        """Kills the process on every target."""
        for name in self.targets:
            self.inject(name)
        return self.begun()

    def begun(self) -> Begun:
        """Returns the record of the injection."""
        pids: dict[str, Value] = dict(sorted(self.before.items()))
        return Begun(targets=self.targets, details={"pids": pids, "problems": dict(self.fault.problems)})

    def inject(self, name: str) -> None:
        """Records the process of a node, and kills it."""
        self.before[name] = self._pid(name)
        self.fault.field.system.kill(self.fault.field.node(name), self.fault.role)

    async def prove(self) -> Proof:
        """Checks whether a process exists, and whether it would accept a request."""
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        for name, before in self.before.items():
            if before is None:
                self.fault.problems[name] = "no process ran before"
            elif self._pid(name) is not None or self.world.listens(name, self.fault.role):
                bad[name] = f"still runs process {self._pid(name)}"
            else:
                good[name] = f"process {before} vanished{self.further(name)}"
        return self.fault.shown(bad, good, {"pids": dict(sorted(self.before.items())), "vanished": sorted(good)})

    def further(self, name: str) -> str:  # noqa: ARG002 - for subclasses with a further effect
        """Returns the further effect on a node, as a clause after the one about its process."""
        return ""

    async def end(self) -> Proof | None:
        """Starts a process on every target, and verifies that it is a new one.

        Raises:
            FaultError: A process died again at once.
        """
        system = self.fault.field.system
        dead = []
        for name in self.targets:
            system.start(self.fault.field.node(name), self.fault.role)
            if not self.world.listens(name, self.fault.role) or self._pid(name) == self.before.get(name):
                dead.append(name)
        if dead:
            raise FaultError(
                f"fault {self.fault.name}: after the restart, no process runs on {', '.join(dead)}; its log has the reason"
            )
        return None

    def _pid(self, name: str) -> int | None:
        states = self.fault.field.system.process_states(self.fault.field.node(name), self.fault.role)
        return next((state[0] for state in states.values() if state is not None), None)


class KilledLeaders(Killed):
    """`leaders-kill`."""

    fault: KillLeaders

    async def begin(self) -> Begun:
        """Kills the leaders one after another."""

        async def kill(victim: str) -> None:
            self.inject(victim)

        self.fault.targets = self.targets = await self.fault.one_after_another(kill)
        return self.begun()


class PowerLost(Killed):
    """`power-loss`."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_POWER})
    fault: PowerLoss

    def __init__(self, fault: PowerLoss, world: World) -> None:
        super().__init__(fault, world)
        self._lost: dict[str, Lost] = {}

    def inject(self, name: str) -> None:
        """Kills the process, and removes the unsynced data.

        Raises:
            FaultError: The process is to outlive its disk.
        """
        for option in ("after", "stall"):
            if self.fault.options.get(option) is not None:
                raise FaultError(f"a simulated process does not outlive its disk; leave out power-loss.{option}")
        self.before[name] = self._pid(name)
        self.world.power_off(name, self.fault.role)
        self.fault.field.system.kill(self.fault.field.node(name), self.fault.role)
        self._lost[name] = self.world.lose_power(name, self.fault.losing)

    def further(self, name: str) -> str:
        """Returns the lost data as a text."""
        lost = self._lost[name]
        return f", and {lost.changed} of {lost.files} files lost unsynced data, {lost.bytes} bytes in all"


class Wiped(Killed):
    """`wipe`."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_FILES})

    def __init__(self, fault: Fault, world: World) -> None:
        super().__init__(fault, world)
        self._lost: dict[str, Lost] = {}

    async def begin(self) -> Begun:
        """Kills the process on every target, removes its files, and prepares its new disk."""
        for name in self.targets:
            self.inject(name)
            await asyncio.to_thread(self._prepare, name)
        return self.begun()

    def inject(self, name: str) -> None:
        """Kills the process, and removes its files."""
        super().inject(name)
        self._lost[name] = self.world.wipe_files(name)

    def _prepare(self, name: str) -> None:
        """Does what an operator does before a process starts on a new disk, e.g. formats it; programs of the system may run."""
        node = self.fault.field.node(name)
        for role in self.fault.labels(node).values():
            service = self.fault.field.system.service(role)
            service.initialise(node)
            service.renew(node)

    def further(self, name: str) -> str:
        """Returns the lost files as a text."""
        lost = self._lost[name]
        return f", and {lost.changed} of its {lost.files} files are gone, {lost.bytes} bytes in all"

    async def prove(self) -> Proof:
        """Checks the kill, and that there were files, of which none is left."""
        killed = await super().prove()
        lost = self._lost.values()
        whole = all(0 < loss.files == loss.changed for loss in lost)
        return killed if whole else Proof(effective=False, reason=killed.reason, measured=killed.measured)


class Damaged(Killed):
    """The faults of files."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_DISK})
    fault: FileFault

    def inject(self, name: str) -> None:
        """Kills the process, and damages one file. A node without a file that can have the damage is a problem of the fault."""
        super().inject(name)
        try:
            self.fault.damages[name] = self.world.damage_file(name, self.fault.damaging(name))
        except NodeError as error:
            self.fault.problems[name] = f"damaging a file failed: {brief(error)}"

    def begun(self) -> Begun:
        """Returns the record of the injection, with the damage.

        Raises:
            FaultError: No file was damaged.
        """
        if not self.fault.damages:
            raise FaultError(f"fault {self.fault.name}: {'; '.join(self.fault.problems.values())}")
        begun = super().begun()
        return Begun(targets=begun.targets, details={**begun.details, "damage": self.fault.measured()})

    async def prove(self) -> Proof:
        """Checks the kill, and the damage that was read back from the files."""
        return self.fault.with_damage(await super().prove())


class RolledBack(Damaged):
    """`file-rollback`."""

    fault: RollBack

    async def begin(self) -> Begun:
        """Keeps the files of every target, waits, and goes on as other faults of files."""
        self.fault.check_time()
        for name in self.targets:
            self.world.keep_files(name)
        await asyncio.sleep(self.fault.options["back"])
        return await super().begin()


class Paused(Effect):
    """`pause`, and its variants by target."""

    def __init__(self, fault: Fault, world: World) -> None:
        super().__init__(fault, world)
        self._handled: dict[str, int] = {}

    async def begin(self) -> Begun:
        """Stops the process on every target.

        Raises:
            FaultError: No target runs a process.
        """
        pids: dict[str, Value] = {}
        for name in self.targets:
            state = self._state(name)
            if state is None:
                self.fault.problems[name] = "there was no process to stop"
                continue
            pids[name] = state[0]
            self.fault.field.system.pause(self.fault.field.node(name), self.fault.role)
        if not pids:
            raise FaultError(f"fault {self.fault.name} found no process to stop on {', '.join(self.targets)}")
        return Begun(targets=self.targets, details={"pids": pids, "problems": dict(self.fault.problems)})

    async def prove(self) -> Proof:
        """Reads the states of the processes, and the number of messages and timers that they have handled."""
        self._handled = {
            name: self.world.handled(name, self.fault.role) for name in self.targets if self._is_stopped(name)
        }
        return self._look()

    async def again(self) -> Proof | None:
        """Reads the states again; `end` compares what the processes handled."""
        return self._look()

    def _look(self) -> Proof:
        """Returns the proof by the states now."""
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        for name in self.targets:
            state = self._state(name)
            if state is not None and state[1] == STOPPED:
                good[name] = f"process {state[0]} is stopped"
            elif state is not None:
                bad[name] = f"runs process {state[0]}, which is not stopped"
        return self.fault.shown(bad, good, {"stopped": sorted(good)})

    async def end(self) -> Proof | None:
        """Verifies that the processes handled nothing, and continues them.

        Raises:
            FaultError: A process is still stopped.
        """
        handled = {name: self.world.handled(name, self.fault.role) - before for name, before in self._handled.items()}
        for name in self.targets:
            self.fault.field.system.resume(self.fault.field.node(name), self.fault.role)
        still = [name for name in self.targets if self._is_stopped(name)]
        if still:
            raise FaultError(f"fault {self.fault.name} is not healed: {', '.join(still)} is still stopped")
        proof = self.fault.proof
        if proof is None or not proof.effective:
            return None
        running = [
            f"{name} handled {count} messages and timers during the fault" for name, count in handled.items() if count
        ]
        text = "; ".join(running) or "none handled a message or a timer during the fault"
        return Proof(
            effective=not running,
            reason=f"{proof.reason[:-1]}; {text}.",
            measured={**proof.measured, "handled": dict(sorted(handled.items()))},
        )

    def _is_stopped(self, name: str) -> bool:
        state = self._state(name)
        return state is not None and state[1] == STOPPED

    def _state(self, name: str) -> tuple[int, str] | None:
        states = self.fault.field.system.process_states(self.fault.field.node(name), self.fault.role)
        return next((state for state in states.values() if state is not None), None)
