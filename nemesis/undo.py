"""Undo notes: what has to be done on a node to heal a fault, left there before the fault is made.

A fault that outlives the tool (a kill -9, a lost connection, a crashed control node) must still be healed by whoever comes
next, without knowing what had been planned. So every effect that lasts is made in one remote command together with a small
script that undoes it, written first. Healing one fault runs its script; healing everything runs all scripts, and removes
every chain of packet rules that bears our name, with or without a script. Scripts are idempotent, and stay until they
succeed. They lie in /run, so that a reboot, which undoes the effects, forgets the notes as well.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.remote import Remote

DIRECTORY = "/run/labrys/undo"
CHAIN = "LABRYS"
SHELL_TIMEOUT_S = 15.0
NOTE_TIMEOUT_S = 5

# Removes all our chains of one address family. `$T` is iptables or ip6tables with its options. Where the tool is missing
# or the kernel has no tables, there is nothing of ours to remove.
_REMOVE_CHAINS = f"""
for T in iptables ip6tables; do
  command -v $T >/dev/null 2>&1 || continue
  chains=$($T -w 5 -S 2>/dev/null | sed -n 's/^-N \\({CHAIN}[^ ]*\\)$/\\1/p')
  [ -n "$chains" ] || continue
  while $T -w 5 -D INPUT -j {CHAIN} 2>/dev/null; do :; done
  for c in $chains; do $T -w 5 -F $c || failed="$failed $T/$c"; done
  for c in $chains; do $T -w 5 -X $c || failed="$failed $T/$c"; done
done
"""


def making(name: str, *, effect: str, undo: str) -> str:
    """Returns a script that leaves the note `name`, then makes the effect; it fails where either fails.

    Args:
        name: The fault's name, unique among the faults of a run.
        effect: POSIX shell; runs under `set -e`.
        undo: POSIX shell, idempotent; also works where the effect was made only in part, or not at all.
    """
    note = f"{DIRECTORY}/{name}"
    return (
        f"set -e\nmkdir -p -m 700 {DIRECTORY}\n"
        f"printf '%s\\n' {shlex.quote(undo)} > {note}.new\nmv {note}.new {note}\n{effect}\n"
    )


def undoing(name: str) -> str:
    """Returns a script that carries out the note `name` and removes it; succeeds where there is no such note."""
    note = f"{DIRECTORY}/{name}"
    return f"[ ! -e {note} ] || {{ timeout {NOTE_TIMEOUT_S} sh {note} && rm -f {note}; }}\n"


def undo_everything(remote: Remote) -> tuple[list[str], list[str]]:
    """Carries out all notes on a node and removes all chains of ours.

    Returns:
        What was found and undone, and what could not be undone, each as words for a person.
    """
    script = f"""
failed=
for note in {DIRECTORY}/*; do
  [ -f "$note" ] || continue
  case $note in *.new) rm -f "$note"; continue;; esac
  echo "found ${{note##*/}}"
  if timeout {NOTE_TIMEOUT_S} sh "$note" >/dev/null; then rm -f "$note"; else failed="$failed ${{note##*/}}"; fi
done
{_REMOVE_CHAINS}
for f in $failed; do echo "failed $f"; done
"""
    result = remote.run(script, timeout_s=2 * SHELL_TIMEOUT_S)
    lines = [line.split(" ", 1) for line in result.stdout.splitlines() if " " in line]
    found = [name for word, name in lines if word == "found"]
    failed = [f"{name} ({result.stderr.strip()[-300:]})" for word, name in lines if word == "failed"]
    return found, failed
