"""The description of a planted bug of a simulated system."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.declare import Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A planted bug.

    Attributes:
        does: The behaviour of the system.
        seen: Real systems with this mistake, with the issue; empty if none is known.
        needs: What a run needs to show it. With less, a run is as valid as one of the correct version.
    """

    does: str
    seen: str = ""
    needs: Needs = field(default_factory=Needs)
