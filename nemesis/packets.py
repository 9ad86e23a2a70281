"""The condition with which a fault begins right after a packet between nodes: simulated ones, or real ones with the switch."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import SIMULATED, SWITCH
from harness.console.plain import name
from harness.errors import InputError
from harness.faults import Fired
from harness.switch import Awaited, SwitchEnded
from harness.units import NS_PER_MS
from nemesis.conditions import MAX_COUNT, MAX_LINE
from nemesis.errors import FaultError
from nemesis.options import integer, text
from nemesis.triggers import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import Trigger
    from harness.op import Value
    from harness.switch import Passed, Seen, Switch
    from harness.world import Pair, World
    from nemesis.field import Field
    from nemesis.options import Option
    from nemesis.triggers import Subject

ANY = "any"
MAX_PORT = 65_535
LARGEST = 65_535
LOOK_S = 0.01
HOLD_NS = 100 * NS_PER_MS  # longer than a fault takes to begin, and shorter than TCP waits before it sends again


class PacketPassed(Condition):
    """The n-th packet of a sort between two nodes. Right after it, the packets between nodes stand still for a moment.

    In the simulator, a packet is a message as a process sends it, and they stand still for 5 ms. On real nodes, the switch
    counts packets of TCP and UDP as their senders' kernels hand them over, and they stand still for 0.1 s.
    """

    SUMMARY = "The n-th packet from or to a possible target; it names the sender."
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "n": integer(1, 1, MAX_COUNT, "Its number after the planned start."),
        "from": text(ANY, "The sender."),
        "to": text(ANY, "The receiver."),
        "has": text("", "A text in it."),
        "port": integer(0, 0, MAX_PORT, "A port of one end; 0: any; not in the simulator."),
        "bytes": integer(1, 0, LARGEST, "The least data; not in the simulator."),
    }
    NAMES_NODE = True
    ONLY_SIMULATED = True  # the packets of real nodes count too, but those of a run by seed have other numbers there
    ON_SWITCH = True

    @classmethod
    def lacks(cls, node: str, can: Capabilities) -> str | None:
        """Between real nodes, there must be a switch."""
        if {SIMULATED, SWITCH} & can.available:
            return None
        return f"no fault can wait for a packet of {node}, because {can.missing.get(SWITCH, 'there is no switch')}"

    @classmethod
    def drawn(cls, subject: Subject) -> Sequence[Mapping[str, Value]]:  # noqa: ARG003 - the same for all
        """None: most packets are alike."""
        return []

    @classmethod
    def prepare(cls, trigger: Trigger, field: Field, world: World | None) -> None:
        """Named nodes must be two of the run.

        Raises:
            InputError: They are not, or a parameter is only for real nodes.
        """
        ends = trigger.parameters["from"], trigger.parameters["to"]
        for end in ends:
            if end not in {ANY, *field.names}:
                raise InputError(
                    f"the trigger {trigger} waits for a packet of {end}, and the nodes are: {', '.join(field.names)}"
                )
        if ends[0] == ends[1] != ANY:
            raise InputError(
                f"the trigger {trigger} waits for a packet of {ends[0]} to itself, and no link carries one"
            )
        usual = {name: cls.OPTIONS[name].default for name in ("port", "bytes")}
        only_real = [name for name, value in usual.items() if trigger.parameters.get(name, value) != value]
        if world is not None and only_real:
            raise InputError(
                f"the trigger {trigger} has {only_real[0]!r}, which the messages of simulated nodes do not; leave it out"
            )

    async def fires(self) -> Fired:
        """Waits for the packet."""
        asked = self.trigger.parameters
        has = asked["has"]
        if self.world is not None:
            message = await self.world.message(frozenset(self.links()), nth=asked["n"], has=has.encode())
            shown = name(message.content.decode(errors="replace"), MAX_LINE)
            return self._fired((message.source, message.target), shown, {"bytes": len(message.content)})
        switch = self.field.switch_on()
        if switch is None:
            raise FaultError("the switch between the nodes is not on, so no packet can be seen")
        passed, seen = await self._passed(
            switch,
            Awaited(
                links=tuple(self.links()),
                nth=asked["n"],
                port=asked["port"],
                least_bytes=asked["bytes"],
                has=has.encode(),
                hold_ns=HOLD_NS,
            ),
        )
        source, target = passed.ports
        measured = {"bytes": passed.bytes, "ports": [source, target], "counted": seen.count}
        ago_ns = passed.ago_ns
        shown = f"{passed.bytes} bytes, port {source} to {target}"
        return self._fired(passed.link, shown, measured, ago_ns)

    def links(self) -> list[Pair]:
        """Returns the links on which packets count."""
        source, target = self.trigger.parameters["from"], self.trigger.parameters["to"]
        pairs = [(one, other) for one in self.field.names for other in self.field.names if one != other]
        named = {source, target} != {ANY}
        return [
            pair
            for pair in pairs
            if source in {ANY, pair[0]}
            and target in {ANY, pair[1]}
            and (named or not set(pair).isdisjoint(self.targets))
        ]

    async def _passed(self, switch: Switch, awaited: Awaited) -> tuple[Passed, Seen]:
        """Waits until the switch has seen the packet. It looks so often that most of the standstill is left."""
        clock = self.sight.clock
        wait = switch.wait_for(awaited)  # in no thread, so that a cancelled wait leaves none behind
        try:
            while (passed := (seen := await asyncio.to_thread(switch.seen, wait)).passed) is None:
                await clock.sleep_until_s(clock.now_s() + LOOK_S)
            return passed, seen
        finally:
            with contextlib.suppress(SwitchEnded):  # the healing of the run says so
                switch.end_wait(wait)

    def _fired(self, link: Pair, shown: str, measured: Mapping[str, Value], ago_ns: int = 0) -> Fired:
        number = self.trigger.parameters["n"]
        return Fired(
            time_ns=self.sight.clock.now_ns() - ago_ns,
            what=f"right after packet {number} from {link[0]} to {link[1]}: {shown}",
            measured={"node": link[0], "from": link[0], "to": link[1], "packet": number, **measured},
        )
