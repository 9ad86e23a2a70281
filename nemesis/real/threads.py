"""Holds single threads of the JVMs of real nodes, by their debuggers."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import TYPE_CHECKING

from harness.faults import Begun, Proof
from harness.slowness import slowed
from nemesis.actor import OnNodes
from nemesis.errors import FaultError
from nemesis.fault import brief
from nemesis.threadholds import Holder, Rate, connect, debugger_ports

if TYPE_CHECKING:
    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Fault
    from nemesis.faults.threads import HoldThreads

PROVE_S = 5.0
STOP_S = 10.0
MEASURED = 40  # the most threads in the measurements of a process


class HoldThreadsOnNodes(OnNodes):
    """`thread-stall`."""

    fault: HoldThreads

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._stop = threading.Event()
        self._holders: dict[str, Holder] = {}  # by the label of the process
        self._work: list[asyncio.Task[object]] = []

    async def begin(self) -> Begun:
        """Connects to the debugger of each process, and begins to hold threads."""
        began_s = time.monotonic()
        try:
            attached = await self.act(self.targets, self._attach, "connecting to the debugger of the JVM")
        except FaultError:
            for holder in self._holders.values():
                holder.debugger.close()
            self._holders.clear()
            raise
        until_s = began_s + self.fault.planned.lasts_s + slowed(STOP_S)
        for label, holder in self._holders.items():
            self._work.append(asyncio.create_task(self._run(label, holder, began_s, until_s)))
        methods = {label: count for counts in attached.done.values() for label, count in counts.items()}
        return Begun(targets=self.targets, details={"methods": methods, "problems": dict(self.problems)})

    def _attach(self, node: Node) -> dict[str, int]:
        ports = debugger_ports(self.field.roles_on(node))
        packages = {daemon.role: daemon.java_packages for daemon in self.field.system.daemons(node)}
        wanted = self.options.get("code")
        methods = {}
        for label, role in self.fault.labels(node).items():
            if not packages[role]:
                continue  # no JVM
            debugger = connect(self.field.shell(node), ports[role])
            holder = Holder(
                debugger=debugger,
                packages=wanted.split("+") if wanted else packages[role],
                rate=Rate(per_second=self.options["per_second"], most_s=self.options["most_ms"] / 1000),
                random=random.Random(f"{self.options.get('seed', 0)} {label}"),  # noqa: S311 - no secret
            )
            try:
                methods[label] = holder.look()
            except FaultError:
                debugger.close()
                raise
            self._holders[label] = holder
        if not methods:
            raise FaultError(f"{node.name} runs no JVM whose packages are known")
        return methods

    async def _run(self, label: str, holder: Holder, began_s: float, until_s: float) -> None:
        node = next(candidate for candidate in self.field.nodes if label in self.fault.labels(candidate))
        outcomes = await self.field.each([node.name], lambda _: holder.run(began_s, until_s, self._stop))
        for error in outcomes.failed.values():
            self.problems[label] = brief(error)

    async def prove(self) -> Proof:
        """Waits until a thread of each process was held."""

        async def held() -> bool:
            return all(holder.held or label in self.problems for label, holder in self._holders.items())

        await self.field.until(held, min(slowed(PROVE_S), self.fault.planned.lasts_s))
        return self._proof()

    async def again(self) -> Proof | None:
        """Looks no second time: each hold is an event with its own times, and `end` counts all."""
        return None

    def _proof(self) -> Proof:
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        for label, holder in sorted(self._holders.items()):
            reported = [hold for hold in holder.held if hold.reported]
            if reported:
                total_s = sum(hold.held_s for hold in reported)
                longest = max(reported, key=lambda hold: hold.held_s)
                good[label] = (
                    f"held threads {len(reported)} times for {total_s:.2f} s in all, the longest {longest.brief}"
                )
            elif label not in self.problems:
                bad[label] = "has no thread that came to one of the lines"
        measured: dict[str, Value] = {
            label: {
                "held": len(holder.held),
                "seconds": round(sum(hold.held_s for hold in holder.held), 3),
                "threads": [str(hold) for hold in holder.held[:MEASURED]],
            }
            for label, holder in sorted(self._holders.items())
        }
        return self.fault.shown(bad, good, measured)

    async def end(self) -> Proof | None:
        """Lets all threads go on, and asks each JVM whether it still holds one.

        Raises:
            FaultError: A JVM still holds a thread.
        """
        self._stop.set()
        await asyncio.gather(*self._work)
        self._work.clear()
        outcomes = await self.field.each(self.targets, self._still_held)
        still_held = {label: names for labels in outcomes.done.values() for label, names in labels.items() if names}
        if still_held or outcomes.failed:
            texts = [f"{label} still holds {', '.join(names)}" for label, names in still_held.items()]
            texts += [f"{node}: {brief(error)}" for node, error in outcomes.failed.items()]
            raise FaultError(f"fault {self.name} is not healed: {'; '.join(texts)}")
        return self._proof() if self._holders else None

    def _still_held(self, node: Node) -> dict[str, list[str]]:
        """Returns the names of the threads that each JVM of a node holds. A process that does not run holds none."""
        ports = debugger_ports(self.field.roles_on(node))
        states = self.field.system.process_states(node, self.role)
        held_names = {}
        for label, role in self.fault.labels(node).items():
            if label in self._holders and states.get(role) is not None:
                debugger = connect(self.field.shell(node), ports[role])
                try:
                    held_names[label] = debugger.held()
                finally:
                    debugger.close()
        return held_names
