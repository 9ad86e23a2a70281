"""The errors of faults: an unusable plan, and a fault that failed."""

from __future__ import annotations

from harness.errors import InfrastructureError, InputError


class PlanError(InputError):
    """A kind, a target, or a plan is unusable. No node was changed."""


class FaultError(InfrastructureError):
    """A fault could not be injected or healed on some node. The run records it with the fault, and continues."""
