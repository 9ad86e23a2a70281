"""Undo notes: scripts on a node that heal a fault, written before the fault begins.

A fault can outlive Labrys (a kill -9, a lost connection, a crashed control node). The next run must still heal it, without
knowledge of the plan. So one remote command first writes a small undo script, and then causes the effect. Healing one fault
runs its script; healing everything runs all scripts, see `harness.healing`. Scripts are idempotent, and stay until they
succeed.
"""

from __future__ import annotations

import shlex

from harness.healing import NOTE_TIMEOUT_S, UNDO_DIRECTORY
from harness.slowness import slowed

SHELL_TIMEOUT_S = 15.0


def making(name: str, *, effect: str, undo: str) -> str:
    """Returns a script that writes the note `name`, and then causes the effect. It fails if either fails.

    Args:
        name: The fault's name, unique among the faults of a run.
        effect: POSIX shell code; runs under `set -e`.
        undo: POSIX shell code, idempotent. It must also work after a partial effect or none.
    """
    note = f"{UNDO_DIRECTORY}/{name}"
    return (
        f"set -e\nmkdir -p -m 700 {UNDO_DIRECTORY}\n"
        f"printf '%s\\n' {shlex.quote(undo)} > {note}.new\nmv {note}.new {note}\n{effect}\n"
    )


def undoing(name: str) -> str:
    """Returns a script that runs the note `name` and removes it. It succeeds if there is no such note."""
    note = f"{UNDO_DIRECTORY}/{name}"
    return f"[ ! -e {note} ] || {{ timeout {slowed(NOTE_TIMEOUT_S):g} sh {note} && rm -f {note}; }}\n"
