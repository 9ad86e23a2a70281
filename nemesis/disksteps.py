"""The condition with which a fault begins right after a step of a disk: in the simulator, and on real nodes by a tracer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, TypeVar

from harness.capabilities import ROOT, SIMULATED_STEPS
from harness.console.plain import name
from harness.errors import InputError
from harness.faults import Fired
from harness.units import NS_PER_MS, NS_PER_US
from harness.world import SYNCING, Stall
from nemesis import diskcalls
from nemesis.conditions import MAX_COUNT, MAX_LINE, check_on, first
from nemesis.errors import FaultError
from nemesis.fault import sentence
from nemesis.options import choice, integer, text
from nemesis.triggers import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import Trigger
    from harness.node import Node
    from harness.op import Value
    from harness.world import World
    from nemesis.field import Field
    from nemesis.options import Option
    from nemesis.triggers import Subject

T = TypeVar("T")

AGAIN_S = 0.05  # after a node ran no process
MAX_STEPS = 10**12
STALL_MS, MAX_STALL_MS = 1000, 60_000
CALLS = ANY_CALL, WALL = ("any", "wall")
STEPS = ("any", "sync", SYNCING, "write", "truncate", "create", "rename", "remove")


class DiskStepMade(Condition):
    """The n-th step of the disk of a node: a change of a file, or a sync. Right after it, the node stands still.

    A step `syncing` is right before a sync makes something durable. It counts only if it is asked for.

    A simulated node does for 5 ms, and a process of a real one until a fault ends it, at most for 5 s.
    """

    SUMMARY = "The n-th step of the disk of a node: a change of a file, or a sync; the fault hits right after it."
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "call": choice("sync", STEPS, "The kind of the steps that count."),
        "file": text("*", "A glob pattern of file names or paths in the data directory."),
        "n": integer(1, 1, MAX_STEPS, "The number of the step of a node after the planned start of the fault."),
        "on": text(None, "The node whose steps count; if not given, each possible target.", needed=False),
        "starts": integer(
            None, 1, MAX_COUNT, "How often the node starts before its steps count; not on real nodes.", needed=False
        ),
        "stall": integer(
            None,
            1,
            MAX_STEPS,
            "The call of each target before which a thread stalls; only of programs by seed.",
            needed=False,
        ),
        "calls": choice(None, CALLS, "Which calls count; wall: reads of the wall clock (`any`).", needed=False),
        "after_us": integer(None, 0, MAX_STEPS, "When its calls begin to count (`0`).", needed=False),
        "stall_ms": integer(None, 1, MAX_STALL_MS, "How long it stalls at most (`1000`).", needed=False),
    }
    NAMES_NODE = True
    ONLY_SIMULATED = True  # real nodes show steps too, but those of a run by seed have other numbers there

    @classmethod
    def lacks(cls, node: str, can: Capabilities) -> str | None:
        """The disk of a simulated node must note its steps. Those of a real node need root."""
        missing = {name: why for name, why in can.missing.items() if name in {ROOT, SIMULATED_STEPS}}
        if missing:
            return f"no fault can begin at a step of the disk of {node}, because {next(iter(missing.values()))}"
        return None

    @classmethod
    def after_start(cls, trigger: Trigger) -> bool:
        """Returns whether it waits for a start."""
        return "starts" in trigger.parameters

    @classmethod
    def drawn(cls, subject: Subject) -> Sequence[Mapping[str, Value]]:  # noqa: ARG003 - the same for all
        """None: `labrys crash` visits all steps."""
        return []

    @classmethod
    def prepare(cls, trigger: Trigger, field: Field, world: World | None) -> None:
        """Lets the disks note their steps, or brings the tracer to real nodes. A named node must be one of the run.

        Raises:
            InputError: It is not, or real nodes cannot do what the trigger asks for.
        """
        check_on(trigger, field, "a step of the disk")
        if "stall" in trigger.parameters and (world is None or not world.stalls):
            raise InputError(
                f"the trigger {trigger} lets a thread stall, and only programs in virtual time have such stalls"
            )
        if world is not None:
            world.note_steps()
            return
        if trigger.parameters.get("call") == SYNCING:
            raise InputError(
                f"the trigger {trigger} waits for a moment before the end of a sync, which only simulated disks show"
            )
        if "starts" in trigger.parameters:
            raise InputError(
                f"the trigger {trigger} counts starts, and only a simulated node is watched from its start; leave them out"
            )
        artifact = diskcalls.tracer()
        for node in field.nodes:
            artifact.install(field.shell(node))

    async def fires(self) -> Fired:
        """Waits for the step."""
        asked = self.trigger.parameters
        nodes = frozenset(self.targets if asked.get("on") is None else (asked["on"],))
        if self.world is None:
            role = self.role if asked.get("on") is None else None  # the step may be one of another role
            having = [
                (node, daemon.role)
                for node in map(self.field.node, sorted(nodes))
                for daemon in self.field.system.daemons(node, role)
            ]
            return await first(self._follow(node, of) for node, of in having)
        step = await self.world.disk_step(
            nodes,
            call=asked["call"],
            pattern=asked["file"],
            nth=asked["n"],
            starts=asked.get("starts", 0),
            stall=self._stall(asked) if "stall" in asked else None,
        )
        return Fired(
            time_ns=self.sight.clock.now_ns(),
            what=f"right {'before' if step.call == SYNCING else 'after'} step {step.number} of the disk of {step.node}: "
            f"{step.call} {name(step.file, MAX_LINE)}",
            measured={
                "node": step.node,
                "step": step.number,
                "call": step.call,
                "file": step.file,
                "unsynced": len(step.unsynced),
            },
        )

    def _stall(self, asked: Mapping[str, Value]) -> Stall:
        return Stall(
            nodes=frozenset(self.targets),
            after_ns=asked.get("after_us", 0) * NS_PER_US,
            wall=asked.get("calls") == WALL,
            nth=asked["stall"],
            length_ns=asked.get("stall_ms", STALL_MS) * NS_PER_MS,
        )

    async def _follow(self, node: Node, role: str) -> Fired:
        """Follows the processes of a role of a real node, one after another."""
        asked, left = self.trigger.parameters, self.trigger.parameters["n"]
        program = f"{diskcalls.tracer().there}/{diskcalls.BINARY}"
        until_s = self.sight.clock.now_s() + self.trigger.limit_s

        def begin(node: Node) -> diskcalls.Followed | None:
            state = self.field.system.process_states(node, role)[role]
            return state and diskcalls.follow(
                self.field.shell(node),
                program,
                pid=state[0],
                folder=self.field.system.data_dir(node, role),
                call=asked["call"],
                pattern=asked["file"],
                nth=left,
                limit_s=until_s - self.sight.clock.now_s(),
            )

        while True:
            followed = await self._on(node, begin)
            if followed is None:
                await asyncio.sleep(AGAIN_S)  # a fault has ended the process, and starts it again
                continue
            stands = await self._step_of(node, followed)
            if isinstance(stands, diskcalls.Stands):
                seen = asked["n"] - left + stands.number
                return self._fired(node.name, stands, seen)
            left -= stands.seen

    async def _step_of(self, node: Node, followed: diskcalls.Followed) -> diskcalls.Stands | diskcalls.Ended:
        """Waits until the process stands still, or has ended."""
        seen: diskcalls.Stands | diskcalls.Ended | None = None
        try:
            while seen is None:
                seen = await self._on(node, lambda node: diskcalls.look(self.field.shell(node), followed))
        finally:
            await self._on(node, lambda node: diskcalls.forget(self.field.shell(node), followed))
        return seen

    async def _on(self, node: Node, action: Callable[[Node], T]) -> T:
        """Does something on a node.

        Raises:
            FaultError: It failed.
        """
        results = await self.field.each([node.name], action)
        if results.failed:
            raise FaultError(f"a step of the disk cannot be seen: {sentence(results.failed)}")
        return results.done[node.name]

    def _fired(self, node: str, stands: diskcalls.Stands, number: int) -> Fired:
        return Fired(
            time_ns=self.sight.clock.now_ns(),
            what=f"right after step {number} of process {stands.pid} of {node}: {stands.call} {name(stands.file, MAX_LINE)}",
            measured={
                "node": node,
                "step": number,
                "call": stands.call,
                "file": stands.file,
                "pid": stands.pid,
            },
        )
