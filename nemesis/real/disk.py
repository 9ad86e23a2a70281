"""Takes the disks of real nodes away, empties them, and fills them. The volumes are those of `nemesis.volume`."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from harness.faults import Begun, Proof
from harness.slowness import slowed
from nemesis import volume
from nemesis.actor import OnNodes
from nemesis.errors import FaultError
from nemesis.fault import brief
from nemesis.real.process import KillOnNodes
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from harness.node import Node
    from harness.remote import Remote
    from nemesis.fault import Fault
    from nemesis.faults.disk import DiskFull, PowerLoss, Wipe

END_TIMEOUT_S = 20.0


class WipeOnNodes(KillOnNodes):
    """`wipe`."""

    fault: Wipe

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._files: dict[str, tuple[int, int]] = {}  # of each process, how many there were and how many are left

    def _kill(self, node: Node) -> None:
        super()._kill(node)
        system, remote = self.field.system, self.field.shell(node)
        for label, role in self.fault.labels(node).items():
            before = files_in(remote, system.data_dir(node, role))
            remote.run(emptying(system.data_dir(node, role)), timeout_s=SHELL_TIMEOUT_S)
            self._files[label] = before, files_in(remote, system.data_dir(node, role))
            service = system.service(role)
            service.initialise(node)
            service.renew(node)

    async def prove(self) -> Proof:
        """Proves the kill, and that there were files, of which none is left."""
        killed = await super().prove()
        by_label = sorted(self._files.items())
        texts = [f"{label} had {before} files, and {left} are left" for label, (before, left) in by_label]
        return Proof(
            effective=killed.effective
            and bool(by_label)
            and all(before and not left for _, (before, left) in by_label),
            reason=f"{killed.reason[:-1]}; {'; '.join(texts) or 'no file was removed'}.",
            measured={
                **killed.measured,
                "files": {label: {"before": before, "left": left} for label, (before, left) in by_label},
            },
        )


class PowerLossOnNodes(KillOnNodes):
    """`power-loss`."""

    fault: PowerLoss

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._losses: dict[str, volume.Loss] = {}

    def _kill(self, node: Node) -> None:
        remote, labels = self.field.shell(node), self.fault.labels(node)
        directories = {role: self.field.system.data_dir(node, role) for role in labels.values()}
        self.note_before(node)
        if self.fault.losing is not None:
            raise FaultError("Labrys does not choose what a real disk loses; leave out power-loss.lost")
        for role in labels.values():
            volume.write_unsynced(remote, directories[role])
        after_s, stall_s = (self.options.get(name) for name in ("after", "stall"))
        outlives = after_s is not None or stall_s is not None
        if not outlives:
            self.field.system.kill(node, self.role)
        for role in labels.values():
            volume.cut_power(remote, directories[role], role, stall_s=float(stall_s or 0.0))
        if outlives:
            time.sleep(float(after_s or 0.0))
            self.field.system.kill(node, self.role)
        for label, role in labels.items():
            self._losses[label] = volume.restore_power(remote, directories[role], role)

    async def prove(self) -> Proof:
        """Proves the kill, and that unsynced data is gone while synced data is whole."""
        killed = await super().prove()
        texts = []
        lost = bool(self._losses)
        for node, loss in sorted(self._losses.items()):
            lost = lost and loss.unsynced_lost and loss.synced_kept
            kept = "was whole" if loss.synced_kept else "was damaged as well"
            gone = "was lost" if loss.unsynced_lost else "was still there"
            texts.append(
                f"on {node} an unsynced file {gone}, a synced one {kept}, "
                f"and {loss.files_changed} of {loss.files} others changed their size or vanished"
            )
        bare = self._without_files()
        texts += [f"no process of {name} has a file there, so it lost nothing" for name in bare]
        measured = {
            node: {
                "unsynced_lost": loss.unsynced_lost,
                "synced_kept": loss.synced_kept,
                "files_changed": loss.files_changed,
            }
            for node, loss in sorted(self._losses.items())
        }
        return Proof(
            effective=killed.effective and lost and not bare,
            reason=f"{killed.reason[:-1]}; {'; '.join(texts) or 'no file system lost anything'}.",
            measured={**killed.measured, "volumes": measured},
        )

    def _without_files(self) -> list[str]:
        """Returns the nodes where no process has a file on its volume: their data is elsewhere, if they have any."""
        labels = {name: self.fault.labels(self.field.node(name)) for name in self.targets}
        hit = {
            name: [self._losses[label] for label in hit_labels if label in self._losses]
            for name, hit_labels in labels.items()
        }
        return [name for name, losses in hit.items() if losses and not any(loss.files for loss in losses)]


class DiskFullOnNodes(OnNodes):
    """`disk-full`."""

    fault: DiskFull

    async def begin(self) -> Begun:
        """Fills the volume of every target."""
        await self.act(self.targets, self._fill, "filling the disk")
        return Begun(targets=self.targets, details={"problems": dict(self.problems)})

    def _fill(self, node: Node) -> None:
        scripts = [volume.filling(self.field.system.data_dir(node, role), role) for role in self.fault.roles_on(node)]
        effect, undo = "\n".join(fill for fill, _ in scripts), "\n".join(empty for _, empty in scripts)
        self.field.shell(node).run(making(self.name, effect=effect, undo=undo), timeout_s=SHELL_TIMEOUT_S)

    def _rooms(self, node: Node) -> list[volume.Room]:
        """Looks at the volume of each process of the node."""
        remote = self.field.shell(node)
        rooms = [volume.room(remote, self.field.system.data_dir(node, role)) for role in self.fault.roles_on(node)]
        if not rooms:
            raise FaultError(f"{node.name} runs no process of the system")
        return rooms

    async def prove(self) -> Proof:
        """Reads the free space, tries to write, and looks for files of the processes."""
        by_node = (await self.act(self.targets, self._rooms, "looking at the disk")).done
        rooms = {
            node: volume.Room(
                free_bytes=max(room.free_bytes for room in own_rooms),
                writable=any(room.writable for room in own_rooms),
                files=sum(room.files for room in own_rooms),
            )
            for node, own_rooms in sorted(by_node.items())
        }
        texts = [
            f"{node} has {room.free_bytes} bytes free and {'takes' if room.writable else 'refuses'} a small file"
            + ("" if room.files else ", but no process has a file there")
            for node, room in rooms.items()
        ]
        texts += [f"{node}: {text}" for node, text in self.problems.items()]
        return Proof(
            effective=bool(rooms) and all(room.files and not room.writable for room in rooms.values()),
            reason=f"{'; '.join(texts)}.",
            measured={
                node: {"free_bytes": room.free_bytes, "writable": room.writable, "files": room.files}
                for node, room in rooms.items()
            },
        )

    async def end(self) -> Proof | None:
        """Frees the space, and starts the process again if it died because of the full disk.

        Raises:
            FaultError: A disk is still full, a node cannot be reached, or the process cannot be started.
        """
        waiting = dict.fromkeys(self.targets, "was not looked at")
        died: list[str] = []
        killed = self.fault.killed()

        def make_room(node: Node) -> bool:
            self.field.shell(node).run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)
            writable = all(room.writable for room in self._rooms(node))
            states = self.field.system.process_states(node, self.role)
            survives = node.name in killed or all(states.get(role) is not None for role in self.fault.roles_on(node))
            if writable and not survives:
                died.append(node.name)
                self.field.system.start(node, self.role)
            return writable

        async def ended() -> bool:
            outcomes = await self.field.each(sorted(waiting), make_room)
            for node, writable in outcomes.done.items():
                if writable:
                    del waiting[node]
                else:
                    waiting[node] = "still refuses a small file"
            waiting.update({node: brief(error) for node, error in outcomes.failed.items()})
            return not waiting

        if not await self.field.until(ended, slowed(END_TIMEOUT_S)):
            texts = "; ".join(f"{node} {text}" for node, text in waiting.items())
            raise FaultError(f"fault {self.name} is not healed: {texts}")
        if died:
            names = ", ".join(sorted(set(died)))
            raise FaultError(
                f"fault {self.name}: the process did not survive the full disk on {names}; it was started again"
            )
        return None


def files_in(remote: Remote, directory: str) -> int:
    """Returns the number of files in a directory and below it; 0 if it is not there."""
    path = shlex.quote(directory)
    answer = remote.run(f"[ ! -d {path} ] || find {path} -type f | wc -l", timeout_s=SHELL_TIMEOUT_S)
    return int(answer.stdout or 0)


def emptying(directory: str) -> str:
    """Returns a script that removes all in a directory, which stays, because a volume may be mounted there."""
    path = shlex.quote(directory)
    return f"[ ! -d {path} ] || find {path} -mindepth 1 -delete"
