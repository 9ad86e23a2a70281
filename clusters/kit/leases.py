"""Locks that only a lease frees, on systems that do not see that a client has gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import InputError

if TYPE_CHECKING:
    from harness.system import System


def refuse_sessions(system: System, software: str) -> None:
    """Refuses locks that end with the connection of their client.

    Args:
        system: A system that frees a lock by its lease only.
        software: Its name in a sentence, e.g. `My Store`.

    Raises:
        InputError: The workload has such locks; the message names the options to give.
    """
    if system.workload == "lock" and system.workload_options.sessions:
        raise InputError(
            f"{software} frees the lock of a client that is gone only by its lease; give --no-sessions, and --lease-s or "
            "--ops-per-lock"
        )
