"""The errors of this room: a plan that cannot be used, and a fault that did not go as it should."""

from __future__ import annotations

from harness.errors import InfrastructureError, InputError


class PlanError(InputError):
    """A kind, a target, or a plan cannot be used as it was given; nothing was changed anywhere."""


class FaultError(InfrastructureError):
    """A fault could not be made, or not be healed, on some node. Recorded with the fault; the run goes on."""
