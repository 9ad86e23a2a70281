"""Faults of the disk with the system's data: power loss, a new disk, and a full disk.

Power loss and a full disk need the data directory on a volume of Labrys from the start of the run (`volume`). If a system
acknowledges data before it syncs, a power loss on a majority can lose acknowledged data by design, and a new disk on a majority
always can. So the default target is one node.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import LOOP_DEVICES, ROOT
from harness.faults import Begun, Proof
from harness.slowness import slowed
from harness.world import Losing
from nemesis import options as opt
from nemesis import volume
from nemesis.errors import FaultError, PlanError
from nemesis.fault import DISK, PROCESS, Fault, Occupied, brief
from nemesis.faults.process import Kill
from nemesis.simulated import machine, process
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from harness.remote import Remote
    from nemesis.field import Field
    from nemesis.simulated.effect import Effect

END_TIMEOUT_S = 20.0
LOSES_ALL, LOSES_NOTHING = "all", "none"


class Wipe(Kill):
    """`wipe`."""

    EFFECT: ClassVar[str] = "{nodes} lost all files"
    SUMMARY: ClassVar[str] = "Kills the process, removes all its files, and starts it again, as on a new disk."
    PROOF: ClassVar[str] = "as for kill; how many files there were, and that none is left"
    GROUPS: ClassVar[frozenset[str]] = frozenset({PROCESS, DISK})
    SIMULATED: ClassVar[type[Effect] | None] = process.Wiped

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self._files: dict[str, tuple[int, int]] = {}  # of each process, how many there were and how many are left

    def _kill(self, node: Node) -> None:
        super()._kill(node)
        system, remote = self.field.system, self.field.shell(node)
        for label, role in self.labels(node).items():
            before = files_in(remote, system.data_dir(node, role))
            remote.run(emptying(system.data_dir(node, role)), timeout_s=SHELL_TIMEOUT_S)
            self._files[label] = before, files_in(remote, system.data_dir(node, role))
            service = system.service(role)
            service.initialise(node)
            service.renew(node)

    async def prove(self) -> Proof:
        """Proves the kill, and that there were files, of which none is left."""
        killed = await super().prove()
        found = sorted(self._files.items())
        texts = [f"{label} had {before} files, and {left} are left" for label, (before, left) in found]
        return Proof(
            effective=killed.effective and bool(found) and all(before and not left for _, (before, left) in found),
            reason=f"{killed.reason[:-1]}; {'; '.join(texts) or 'no file was removed'}.",
            measured={
                **killed.measured,
                "files": {label: {"before": before, "left": left} for label, (before, left) in found},
            },
        )


class PowerLoss(Kill):
    """`power-loss`."""

    EFFECT: ClassVar[str] = "{nodes} lost power"
    SUMMARY: ClassVar[str] = "Kills the process and loses all data that it wrote but did not sync."
    PROOF: ClassVar[str] = (
        "as for kill; on the volume with the files of the process, a file written just before is lost, and one that was synced "
        "is whole"
    )
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, LOOP_DEVICES})
    GROUPS: ClassVar[frozenset[str]] = frozenset({PROCESS, DISK})
    PREPARES: ClassVar[bool] = True
    SIMULATED: ClassVar[type[Effect] | None] = process.PowerLost
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "after": opt.number(
            None,
            0.0,
            10.0,
            "The seconds for which the process still runs after its disk is gone, so that its writes and syncs fail; not in "
            "the simulator. If neither this nor stall is given, the process is killed first.",
        ),
        "stall": opt.number(
            None,
            0.001,
            10.0,
            "The seconds before the disk is gone, for which its writes and syncs wait while the process runs; what it wrote "
            "before reaches the disk. Not in the simulator.",
        ),
        "lost": opt.text(
            None,
            "In the simulator: which of the changes that no sync has made durable are lost: all, none, or their places from "
            "the newest one, e.g. 1+3. The default: what the seed draws.",
        ),
        "torn": opt.flag(
            "In the simulator: whether the newest write that survives is there in part; it needs lost, and not all may be lost."
        ),
    }

    @classmethod
    def check_options(cls, kind: str, options: Mapping[str, Value]) -> None:  # noqa: ARG003 - the messages name it
        """Refuses losses that cannot be; see `losing`."""
        losing(options)

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self._losses: dict[str, volume.Loss] = {}
        self.losing = losing(self.options)

    def _kill(self, node: Node) -> None:
        remote, labels = self.field.shell(node), self.labels(node)
        directories = {role: self.field.system.data_dir(node, role) for role in labels.values()}
        self.note_before(node)
        if self.losing is not None:
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
        labels = {name: self.labels(self.field.node(name)) for name in self.targets}
        hit = {
            name: [self._losses[label] for label in found if label in self._losses] for name, found in labels.items()
        }
        return [name for name, losses in hit.items() if losses and not any(loss.files for loss in losses)]


def losing(options: Mapping[str, Value]) -> Losing | None:
    """Returns what a loss of power takes by its options; None: what the seed draws.

    Raises:
        PlanError: The option is not valid.
    """
    text, torn = options.get("lost"), bool(options.get("torn"))
    if text is None:
        if torn:
            raise PlanError("power-loss.torn needs power-loss.lost, which says what else is lost")
        return None
    if text == LOSES_ALL and torn:
        raise PlanError(
            f"power-loss.torn tears the newest write that survives, and with power-loss.lost={LOSES_ALL} none survives; give "
            f"power-loss.lost={LOSES_NOTHING}, or places of changes such as 1+3"
        )
    if text == LOSES_ALL:
        return Losing()
    if text == LOSES_NOTHING:
        return Losing(changes=frozenset(), torn=torn)
    places = text.split("+")
    if not all(place.isascii() and place.isdigit() and int(place) for place in places):
        raise PlanError(
            f"power-loss.lost takes {LOSES_ALL}, {LOSES_NOTHING}, or places of changes from the newest one such as 1+3, "
            f"not {text!r}"
        )
    return Losing(changes=frozenset(map(int, places)), torn=torn)


class DiskFault(Fault):
    """The base class of faults of a disk that processes can survive."""

    def killed(self) -> frozenset[str]:
        """Returns the targets whose processes another fault has killed. That fault starts them again at its end."""
        processes = Occupied(groups=frozenset({PROCESS}), role=self.role, nodes=frozenset(self.targets))
        kills = [other for other in self.field.holders(processes) if isinstance(other, Kill)]
        return frozenset().union(*(kill.occupied.shared(processes) for kill in kills))


class DiskFull(DiskFault):
    """`disk-full`."""

    EFFECT: ClassVar[str] = "{nodes} had a full disk"
    SUMMARY: ClassVar[str] = "Fills the volume of the data directory."
    PROOF: ClassVar[str] = (
        "on the volume with the files of the process, no byte is free, and writing a small file fails; at the end, it succeeds"
    )
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, LOOP_DEVICES})
    GROUPS: ClassVar[frozenset[str]] = frozenset({DISK})
    WHOLE_NODE: ClassVar[str | None] = None
    DISABLES: ClassVar[bool] = True
    PREPARES: ClassVar[bool] = True
    SIMULATED: ClassVar[type[Effect] | None] = machine.Full

    async def begin(self) -> Begun:
        """Fills the volume of every target."""
        await self.act(self.targets, self._fill, "filling the disk")
        return Begun(targets=self.targets, details={"problems": dict(self.problems)})

    def _fill(self, node: Node) -> None:
        scripts = [volume.filling(self.field.system.data_dir(node, role), role) for role in self.roles_on(node)]
        effect, undo = "\n".join(fill for fill, _ in scripts), "\n".join(empty for _, empty in scripts)
        self.field.shell(node).run(making(self.name, effect=effect, undo=undo), timeout_s=SHELL_TIMEOUT_S)

    def _rooms(self, node: Node) -> list[volume.Room]:
        """Looks at the volume of each process of the node."""
        remote = self.field.shell(node)
        rooms = [volume.room(remote, self.field.system.data_dir(node, role)) for role in self.roles_on(node)]
        if not rooms:
            raise FaultError(f"{node.name} runs no process of the system")
        return rooms

    async def prove(self) -> Proof:
        """Reads the free space, tries to write, and looks for files of the processes."""
        by_node = (await self.act(self.targets, self._rooms, "looking at the disk")).done
        rooms = {
            node: volume.Room(
                free_bytes=max(room.free_bytes for room in found),
                writable=any(room.writable for room in found),
                files=sum(room.files for room in found),
            )
            for node, found in sorted(by_node.items())
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
        killed = self.killed()

        def make_room(node: Node) -> bool:
            self.field.shell(node).run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)
            writable = all(room.writable for room in self._rooms(node))
            states = self.field.system.process_states(node, self.role)
            survives = node.name in killed or all(states.get(role) is not None for role in self.roles_on(node))
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
    found = remote.run(f"[ ! -d {path} ] || find {path} -type f | wc -l", timeout_s=SHELL_TIMEOUT_S)
    return int(found.stdout or 0)


def emptying(directory: str) -> str:
    """Returns a script that removes all in a directory, which stays, because a volume may be mounted there."""
    path = shlex.quote(directory)
    return f"[ ! -d {path} ] || find {path} -mindepth 1 -delete"
