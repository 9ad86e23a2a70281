"""Installed systems for tests that need any system of a kind: the one place where they have names."""

from __future__ import annotations

from typing import Final

from commands.options.choosing import PIPED_SYSTEM, SIMULATED_SYSTEM, NameOptions

DEFAULT: Final = NameOptions().system_name  # on machines, and as Java in the simulator
SIMULATED: Final = SIMULATED_SYSTEM  # nodes of Labrys' own in the simulator
PIPED: Final = PIPED_SYSTEM  # programs with pipes
