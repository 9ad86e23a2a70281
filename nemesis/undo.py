"""Undo notes: what has to be done on a node to heal a fault, left there before the fault is made.

A fault that outlives the tool (a kill -9, a lost connection, a crashed control node) must still be healed by whoever comes
next, without knowing what had been planned. So every effect that lasts is made in one remote command together with a small
script that undoes it, written first. Healing one fault runs its script; healing everything runs all of them, see
`harness.healing`. Scripts are idempotent, and stay until they succeed.
"""

from __future__ import annotations

import shlex

from harness.healing import NOTE_TIMEOUT_S, UNDO_DIRECTORY

SHELL_TIMEOUT_S = 15.0


def making(name: str, *, effect: str, undo: str) -> str:
    """Returns a script that leaves the note `name`, then makes the effect; it fails where either fails.

    Args:
        name: The fault's name, unique among the faults of a run.
        effect: POSIX shell; runs under `set -e`.
        undo: POSIX shell, idempotent; also works where the effect was made only in part, or not at all.
    """
    note = f"{UNDO_DIRECTORY}/{name}"
    return (
        f"set -e\nmkdir -p -m 700 {UNDO_DIRECTORY}\n"
        f"printf '%s\\n' {shlex.quote(undo)} > {note}.new\nmv {note}.new {note}\n{effect}\n"
    )


def undoing(name: str) -> str:
    """Returns a script that carries out the note `name` and removes it; succeeds where there is no such note."""
    note = f"{UNDO_DIRECTORY}/{name}"
    return f"[ ! -e {note} ] || {{ timeout {NOTE_TIMEOUT_S} sh {note} && rm -f {note}; }}\n"
