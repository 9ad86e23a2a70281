"""Faults of the disk with the system's data: power loss, a new disk, a full disk, and a slow one.

Power loss and a full disk need the data directory on a volume of Labrys from the start of the run (`volume`). If a system
acknowledges data before it syncs, a power loss on a majority can lose acknowledged data by design, and a new disk on a majority
always can. So the default target is one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import LOOP_DEVICES, ROOT, SIMULATED_KERNEL
from harness.world import Losing
from nemesis import options as opt
from nemesis.errors import PlanError
from nemesis.fault import DISK, PROCESS, Fault, Occupied
from nemesis.faults.process import Kill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.op import Value
    from nemesis.field import Field

LOSES_ALL, LOSES_NOTHING = "all", "none"


class Wipe(Kill):
    """`wipe`."""

    EFFECT: ClassVar[str] = "{nodes} lost all files"
    SUMMARY: ClassVar[str] = "Kills the process, removes all its files, and starts it again, as on a new disk."
    PROOF: ClassVar[str] = "as for kill; how many files there were, and that none is left"
    GROUPS: ClassVar[frozenset[str]] = frozenset({PROCESS, DISK})


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
        self.losing = losing(self.options)


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
    if not all(number.isascii() and number.isdigit() and int(number) for number in places):
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


class DiskSlow(Fault):
    """`disk-slow`."""

    EFFECT: ClassVar[str] = "{nodes} had a slow disk"
    SUMMARY: ClassVar[str] = "Lets each sync of a file take long, only in the simulator of programs."
    PROOF: ClassVar[str] = "the longest syncs of the node that begin during the fault, and before it, in virtual time"
    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_KERNEL})
    GROUPS: ClassVar[frozenset[str]] = frozenset({DISK})
    WHOLE_NODE: ClassVar[str | None] = "all processes of a node have its disk"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "sync_ms": opt.number(500, 1, 60_000, "The mean time of a sync.", hunted=(50, 500, 2000))
    }


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
