"""Faults of packets that can hit single links: those between the targets and named other nodes, in one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.targets import NAME_SEPARATOR
from nemesis import options as opt
from nemesis.errors import FaultError
from nemesis.fault import Fault
from nemesis.targets import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.op import Value
    from nemesis.fault import Drawing, Drawn
    from nemesis.field import Field

PEERS = "peers"


class OnLinks(Fault):
    """The base class of these faults."""

    LEAST_NODES: ClassVar[int] = 2
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        PEERS: opt.text(None, "The nodes at the other end, e.g. n2+n3; else all.")
    }

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        if PEERS not in self.options:
            return
        self.targets = tuple(name for name in targets if self.ends(name))
        self.problems |= {name: f"it has no link to {self.options[PEERS]}" for name in targets if not self.ends(name)}
        if not self.targets:
            raise FaultError(f"fault {self.name} has no link between {', '.join(targets)} and {self.options[PEERS]}")

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the target. The nodes at the other end must be nodes of the run."""
        if PEERS in drawing.options:
            check_names(peers_of(drawing.options), drawing.nodes)
        return super().draw(drawing)

    def ends(self, name: str) -> list[str]:
        """Returns the nodes at the other ends of the links that the fault hits at a target."""
        named = peers_of(self.options)
        return [other for other in super().ends(name) if not named or other in named]


def peers_of(options: Mapping[str, Value]) -> list[str]:
    """Returns the names in the option; none if it is not given."""
    return str(options[PEERS]).split(NAME_SEPARATOR) if PEERS in options else []
