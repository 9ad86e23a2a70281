"""The variables of every program of the simulator and of pipes, whatever those of the user are.

A seed repeats a run on another machine. So what a program says must not depend on where its user lives.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SAME_EVERYWHERE: Final[Mapping[str, str]] = MappingProxyType({"TZ": "UTC"})
