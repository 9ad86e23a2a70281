"""What the rules of a search need to know of a step, computed once for each state of a node and each event."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from clusters.sim.explore.nodes import Step


class Move(NamedTuple):
    """A step of a node.

    Attributes:
        step: The step.
        is_silent: Whether it does not concern clients: it is no request, and has no reply.
        is_idle: Whether it can be left out, since it has no effect.
        sent: Its messages, one bit for each, as in `State.bag`.
        touched: The place of the node, and those of the receivers.
    """

    step: Step
    is_silent: bool
    is_idle: bool
    sent: int
    touched: tuple[int, ...]
