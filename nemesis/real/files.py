"""Damages files on real nodes, after a kill. Numbers in the plan select the file and the bytes among those on the node."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Final

from harness.damage import How
from harness.faults import Begun, Proof
from nemesis.errors import FaultError
from nemesis.filedamage import KEPT, damaging, keeping, parse_changed
from nemesis.real.process import KillOnNodes
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from harness.node import Node
    from nemesis.faults.files import FileFault, RollBack

MAX_REASON: Final = 300


class FileOnNodes(KillOnNodes):
    """`file-truncate`, `file-bitflip` and `file-copy`."""

    fault: FileFault

    def _damage(self, node: Node) -> None:
        running = {pid for seen in self.sights(node).values() for pid in seen.pids}
        if running.intersection(self.pids_noted(node)):
            raise FaultError(f"{node.name}: its process still runs, so its files are left alone")
        asked = self.fault.damaging(node.name)
        for label, role in self.fault.labels(node).items():
            command = damaging(asked, self.field.system.data_dir(node, role), self.kept(role))
            done = self.field.shell(node).run(command, timeout_s=SHELL_TIMEOUT_S, check=False)
            if not done.status:
                self.fault.damages[label] = parse_changed(
                    done.stdout, 1 if asked.how is How.FLIP else asked.chunk_bytes
                )
            else:
                self.problems[label] = f"no file was damaged: {done.stderr.strip()[-MAX_REASON:]}"
        if not self.fault.damages.keys() & self.fault.labels(node).keys():
            raise FaultError("; ".join(self.problems[label] for label in self.fault.labels(node)))

    def kept(self, role: str) -> str:
        """Returns the folder on a node for the earlier files of a role."""
        return f"{KEPT}/{self.name}/{role}"

    async def begin(self) -> Begun:
        """Kills the process and damages one of its files on every target."""
        begun = await super().begin()
        await self.act(self.noted(), self._damage, "damaging a file")
        return Begun(targets=begun.targets, details={**begun.details, "damage": self.fault.measured()})

    async def prove(self) -> Proof:
        """Proves the kill and the damage that was read back from the files."""
        return self.fault.with_damage(await super().prove())


class RollBackOnNodes(FileOnNodes):
    """`file-rollback`."""

    fault: RollBack

    async def begin(self) -> Begun:
        """Keeps the files, waits, kills the process, and gives one of its files the content that it had.

        Raises:
            FaultError: The fault is too short, or the files of no target can be kept.
        """
        self.fault.check_time()
        await self.act(self.targets, self._keep, "keeping the files")
        await asyncio.sleep(self.options["back"])
        begun = await super().begin()
        await self.act(self.targets, lambda node: self.field.shell(node).run(undoing(self.name)), "removing the copies")
        return begun

    def _keep(self, node: Node) -> None:
        """Stops the process for a moment, so that the files are of one moment, syncs them, and copies them."""
        system, remote = self.field.system, self.field.shell(node)
        folder = shlex.quote(f"{KEPT}/{self.name}")
        remote.run(making(self.name, effect="", undo=f"rm -rf {folder}"), timeout_s=SHELL_TIMEOUT_S)
        system.pause(node, self.role)
        try:
            for role in self.fault.labels(node).values():
                command = keeping(system.data_dir(node, role), self.options["file"], self.kept(role))
                remote.run(command, timeout_s=SHELL_TIMEOUT_S)
        finally:
            system.resume(node, self.role)
