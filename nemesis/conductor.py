"""Runs the faults of a plan on a cluster: resolves the targets, injects the faults, proves the effects, and heals.

The conductor knows which faults affect which nodes. Two faults of one group never share a node, so that the healing of one
cannot be mistaken for the healing of the other. It raises an error between the start and the end of a fault to the schedule,
which records it and continues. `heal` does not depend on the state of this object: it finds the notes and marks on the nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.blame import Blamable, blaming
from harness.capabilities import CLOCK, JAVA, SWITCH
from harness.errors import InputError
from harness.faults import lasting, unseen_at_the_end
from harness.healing import detach_volume, forget_environment, undo_everything
from harness.slowness import slowed
from harness.switch import SwitchEnded
from harness.targets import EVERYWHERE, ByLeader, names_of
from harness.world import world_of
from nemesis import fakeclock, threadholds
from nemesis import targets as tgt
from nemesis.damage import too_damaged
from nemesis.errors import FaultError
from nemesis.evidence import STOPPED
from nemesis.fault import Occupied, brief, instead_of, sentence
from nemesis.field import Field
from nemesis.kinds import find_kind, members_of
from nemesis.lacking import missing_capabilities
from nemesis.triggers import find_trigger
from nemesis.volume import attach

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from harness.cluster import Cluster
    from harness.faults import Begun, Fired, PlannedFault, Proof, Sight
    from harness.node import Node
    from harness.system import System
    from nemesis.actor import Actor
    from nemesis.fault import Fault

LEAST_PATIENCE_S = 2.0
MOST_PATIENCE_S = 25.0
QUIESCE_TIMEOUT_S = 20.0
HEAL_ATTEMPTS_S = 20.0

logger = logging.getLogger(__name__)


class Conductor:
    """The nemesis of a run; see `harness.faults.Nemesis`."""

    def __init__(self, *, cluster: Cluster, system: System, seed: int = 0) -> None:
        self._world = world_of(cluster)
        self._actors: dict[int, Actor] = {}  # by the fault's id
        self._field = Field(cluster=cluster, system=system, seed=seed)
        self._damaged: dict[str | None, frozenset[str]] = {}  # the nodes of each role; None: all roles
        self._ending: set[int] = set()  # the ids of faults in healing
        self._met: dict[int, str | None] = {}  # the node that the trigger of a fault named, by the fault's id
        self._prepared = False

    async def prepare(self, plan: Sequence[PlannedFault]) -> None:
        """Starts the switch, makes volumes for the system's data, and gives processes clocks and debuggers, as the plan needs.

        The system must be installed, and must not run. Healing keeps all of these; `release` removes them.

        Raises:
            FaultError: A volume, a clock or a debugger cannot be made.
            InputError: A program of the system reads the clock in a way that no clock fault changes, or the system does not
                support a trigger.
        """
        triggers = [fault.trigger for fault in plan if fault.trigger is not None]
        conditions = [find_trigger(trigger.name).condition for trigger in triggers]
        for trigger, condition in zip(triggers, conditions, strict=True):
            condition.prepare(trigger, self._field, self._world)
        if self._world is not None:  # a simulated node has its own disk and clock
            effects = [(find_kind(fault.kind).simulated, fault.options) for fault in plan]
            if any(effect is not None and effect.remembers_syncs(options) for effect, options in effects):
                self._world.prepare_loss()
            return
        planned = [(find_kind(fault.kind).fault, fault.role) for fault in plan]
        on_switch = any(find_kind(fault.kind).fault.on_switch(fault.options) for fault in plan)
        if on_switch or any(condition.ON_SWITCH for condition in conditions):
            await self._field.switch()
        perhaps_switched = [kind for kind, _ in planned if SWITCH in kind.INSTEAD.values()]
        if perhaps_switched:
            can = await self._field.capabilities()
            if any(SWITCH in instead_of(kind, can) for kind in perhaps_switched):
                await self._field.switch()
        on_volumes = {role for kind, role in planned if kind.PREPARES}
        if on_volumes:
            await self._prepare_volumes(on_volumes)
        clocks = {role for kind, role in planned if CLOCK in kind.NEEDS}
        if clocks:
            await self._prepare_clocks(clocks)
        debuggers = {role for kind, role in planned if JAVA in kind.OF_SYSTEM}
        if debuggers:
            await self._prepare_debuggers(debuggers)

    async def _prepare_clocks(self, roles: AbstractSet[str | None]) -> None:
        """Gives processes their own clocks: on nodes that share this machine's clock, and on the nodes of targeted roles."""
        can = await self._field.capabilities()
        of_roles = {name for role in roles if role is not None for name in self._field.layout.of(role)}
        names = [name for name in self._field.names if name in of_roles or CLOCK not in can[name].available]
        unreachable = (await self._field.each(names, self._beyond_faketime)).done
        refused = {name: texts for name, texts in unreachable.items() if texts}
        if refused:
            texts = "\n  ".join(f"{name}: {text}" for name, node_texts in refused.items() for text in node_texts)
            raise InputError(
                "no clock fault can change the clock of these processes, because libfaketime does not reach them:\n  "
                f"{texts}\n"
                "  Leave these faults out (`--nemesis all,-clock-skew,-clock-strobe`), or set `faketime = False` in the system"
            )
        self._prepared = self._prepared or bool(names)
        outcomes = await self._field.each(
            names, lambda node: fakeclock.prepare(self._field.shell(node), self._field.roles_on(node))
        )
        if outcomes.failed:
            raise FaultError(f"the process cannot have a clock of its own: {sentence(outcomes.failed)}")

    async def _prepare_debuggers(self, roles: AbstractSet[str | None]) -> None:
        """Lets the JVMs of these roles start with a debugger; all JVMs if None is among the roles."""
        self._prepared = True

        def prepare(node: Node) -> None:
            ports = threadholds.debugger_ports(self._field.roles_on(node))
            known = [daemon.role for daemon in self._field.system.daemons(node) if daemon.java_packages]
            threadholds.prepare(self._field.shell(node), {role: ports[role] for role in known if roles & {None, role}})

        outcomes = await self._field.each(self._field.names, prepare)
        if outcomes.failed:
            raise FaultError(f"a JVM cannot have a debugger: {sentence(outcomes.failed)}")

    def _beyond_faketime(self, node: Node) -> list[str]:
        """Returns a sentence for each program of a node that libfaketime cannot reach."""
        remote = self._field.shell(node)
        programs = {daemon.role: daemon.argv[0] for daemon in self._field.system.daemons(node)}
        reasons = {role: fakeclock.check_program(remote, program) for role, program in programs.items()}
        return [f"{programs[role]}, the {role}, {reason}" for role, reason in reasons.items() if reason]

    async def _prepare_volumes(self, roles: AbstractSet[str | None]) -> None:
        """Puts the data of the processes of these roles on volumes; of all processes if None is among the roles."""
        self._prepared = True

        def prepare(node: Node) -> None:
            detach_volume(self._field.shell(node))
            for role in self._field.roles_on(node):
                if roles & {None, role}:
                    attach(self._field.shell(node), self._field.system.data_dir(node, role), role)

        outcomes = await self._field.each(self._field.names, prepare)
        if outcomes.failed:
            raise FaultError(f"the data directory could not be put on a volume: {sentence(outcomes.failed)}")

    async def release(self) -> None:
        """Removes the clocks, the debuggers, and the volumes with their data. The system must not run.

        Raises:
            FaultError: A volume is still there, or a node cannot be reached.
        """
        if not self._prepared:
            return
        outcomes = await self._field.each(self._field.names, self._release_node)
        if outcomes.failed:
            raise FaultError(f"a volume or a clock could not be taken away: {sentence(outcomes.failed)}")
        self._prepared = False

    def _release_node(self, node: Node) -> bool:
        remote = self._field.shell(node)
        forget_environment(remote)
        return detach_volume(remote)

    async def wait(self, fault: PlannedFault, sight: Sight) -> Fired | None:
        """Waits for the trigger of a fault; see `harness.faults.Nemesis`."""
        if fault.trigger is None:
            raise FaultError(f"fault {fault.id}-{fault.kind} has no trigger to wait for")
        condition = find_trigger(fault.trigger.name).condition(
            trigger=fault.trigger,
            targets=names_of(fault.target) or self._field.layout.of(fault.role),
            role=fault.role,
            field=self._field,
            world=self._world,
            sight=sight,
        )
        fired = await condition.wait()
        self._met[fault.id] = None if fired is None else fired.node
        return fired

    async def begin(self, fault: PlannedFault) -> Begun:
        """Resolves the targets and injects the fault.

        Raises:
            FaultError: A node lacks a capability, there is no leader or no free target, or the injection fails on all targets.
        """
        with self._blaming(fault):
            made = await self._make(fault)
        with self._blaming(fault, made):
            actor = find_kind(fault.kind).actor(made, self._world)
        self._field.faults[fault.id], self._actors[fault.id] = made, actor
        with self._blaming(fault, made, actor):
            begun = await actor.begin()
            return replace(begun, effect=made.effect(begun.targets))

    async def prove(self, fault: PlannedFault) -> Proof:
        """Measures the effect of a fault that began."""
        made, actor = self._field.faults[fault.id], self._actors[fault.id]
        with self._blaming(fault, made, actor):
            made.proof = await actor.prove()
        return made.proof

    async def look_again(self, fault: PlannedFault) -> Proof | None:
        """Measures the effect again; see `harness.faults.Nemesis`."""
        made = self._field.faults.get(fault.id)
        if made is None or made.proof is None or not made.proof.effective:
            return None
        first = made.proof
        made.proof = unseen_at_the_end(first)  # if the second look fails
        actor = self._actors[fault.id]
        with self._blaming(fault, made, actor):
            second = await actor.again()
        made.proof = first if second is None else lasting(first, second)
        return None if second is None else made.proof

    async def end(self, fault: PlannedFault) -> Proof | None:
        """Heals one fault and verifies the healing. Does nothing if the fault never began or is healed.

        Raises:
            FaultError: It cannot be healed. Another call, or `heal`, tries again.
        """
        made = self._field.faults.get(fault.id)
        if made is None:
            return None
        self._ending.add(fault.id)
        actor = self._actors[fault.id]
        try:
            with self._blaming(fault, made, actor):
                proof = await actor.end()
        finally:
            self._ending.discard(fault.id)
            self._field.over.add(fault.id)
        self._field.faults.pop(fault.id, None)
        self._actors.pop(fault.id, None)
        return proof

    @contextlib.contextmanager
    def _blaming(self, fault: PlannedFault, *made: Fault | Actor) -> Iterator[None]:
        """Raises an exception from the code of the system or of a fault as `PluginError`; see `harness.blame`."""
        system = self._field.system
        theirs = [Blamable(type(part), f"fault {fault.kind}") for part in made]
        with blaming(Blamable(type(system), f"system {system.name}"), *theirs):
            yield

    async def heal(self) -> None:
        """Heals all effects of Labrys on the nodes, by the notes and marks on them.

        Raises:
            FaultError: A node still has an effect, or is unreachable.
            SwitchEnded: The switch had ended by itself. All else is healed.
        """
        if self._world is not None:
            self._world.heal()
            self._forget()
            return
        if not await self._field.quiesce(slowed(QUIESCE_TIMEOUT_S)):
            logger.warning(
                "some commands on nodes are still under way after %g s; healing anyway", slowed(QUIESCE_TIMEOUT_S)
            )
        ended = await self._stop_switch()
        waiting: dict[str, str] = dict.fromkeys(self._field.names, "was not looked at")

        async def healed() -> bool:
            outcomes = await self._field.each(sorted(waiting), self._heal_node)
            waiting.clear()
            waiting.update({node: brief(error) for node, error in outcomes.failed.items()})
            return not waiting

        if not await self._field.until(healed, slowed(HEAL_ATTEMPTS_S)):
            texts = "; ".join(f"{node}: {text}" for node, text in waiting.items())
            raise FaultError(f"healing is not complete: {texts}")
        self._forget()
        if ended is not None:
            raise ended

    def _forget(self) -> None:
        self._field.faults.clear()
        self._actors.clear()

    async def _stop_switch(self) -> SwitchEnded | None:
        """Gives the nodes their bridge again. Returns that the switch had ended by itself.

        A run observes the recovery over the bridge. So no death of the switch looks like a system that does not recover.
        """
        switch = self._field.switch_on()
        if switch is None:
            return None
        try:
            await asyncio.to_thread(switch.stop)
        except SwitchEnded as error:
            return error
        return None

    def _heal_node(self, node: Node) -> None:
        remote = self._field.shell(node)
        healing = undo_everything(remote)
        healed = [*healing.healed]
        if not self._prepared and self._release_node(node):
            healed.append("a volume of an earlier run")
        if healed:
            logger.info("healed on %s: %s", node.name, ", ".join(healed))
        for role, state in self._field.system.process_states(node).items():
            if state is not None and state[1] == STOPPED:
                self._field.system.resume(node, role)
                logger.info("continued pid %d, the %s on %s", state[0], role, node.name)
        if healing.failed:
            raise FaultError(f"could not undo {', '.join(healing.failed)}: {healing.reason}")

    async def _make(self, planned: PlannedFault) -> Fault:
        kind = find_kind(planned.kind)
        lacking = missing_capabilities([planned], await self._field.capabilities(), self._field.nodes)
        if lacking:
            raise FaultError(f"fault {planned.id} is refused: {lacking[0]}")
        targets = tgt.resolve(
            planned.target,
            members_of(kind, planned.role, self._field.layout),
            order=planned.order,
            leader=await self._leader_for(planned),
            fired_on=self._met.get(planned.id),
        )
        occupied = Occupied(groups=kind.fault.GROUPS, role=planned.role, nodes=frozenset(targets))

        async def let_go() -> bool:
            return not any(other.id in self._ending for other in self._field.holders(occupied))

        await self._field.until(let_go, _patience_s(planned))
        # There is no `await` from here to the fault's registration, so no other fault can take the nodes.
        holders = {node: other.name for other in self._field.holders(occupied) for node in other.targets}
        free = tuple(node for node in targets if node not in holders)
        if not free:
            reasons = "; ".join(f"{holders[node]} already affects {node}" for node in targets)
            raise FaultError(f"fault {planned.id}-{planned.kind} has no target left: {reasons}")
        if kind.fault.DAMAGES and planned.target not in EVERYWHERE:  # who asks for all nodes means it
            self._allow_damage(planned, free)
        made = kind.fault(planned=planned, targets=free, field=self._field)
        made.problems.update(
            {node: f"left out, because {holders[node]} affects it" for node in targets if node in holders}
        )
        return made

    async def _leader_for(self, planned: PlannedFault) -> str | None:
        """Finds the leader if the target depends on it. It waits for a leader, but leaves some of the fault's time."""
        if not isinstance(planned.target, ByLeader):
            return None
        patience_s, role = _patience_s(planned), planned.role
        leader = await self._field.leader(patience_s, role)
        if leader is None:
            who = f"no {role}" if role else "no node"
            raise FaultError(
                f"fault {planned.id}-{planned.kind} needs a leader, and within {patience_s:g} s {who} reported that it leads: "
                f"{self._field.said(role)}"
            )
        return leader

    def _allow_damage(self, planned: PlannedFault, targets: tuple[str, ...]) -> None:
        """Records the permanently damaged nodes. It refuses to damage more than a minority of a role's nodes."""
        role = planned.role
        together = {**self._damaged, role: self._damaged.get(role, frozenset()) | set(targets)}
        refusal = too_damaged(self._field.layout, together)
        if refusal:
            raise FaultError(f"fault {planned.id}-{planned.kind} is refused: {refusal}")
        self._damaged = together


def _patience_s(planned: PlannedFault) -> float:
    """Returns how long a fault may wait for its leader or its nodes, so that some of its time is left."""
    return min(MOST_PATIENCE_S, max(LEAST_PATIENCE_S, planned.lasts_s - LEAST_PATIENCE_S))
