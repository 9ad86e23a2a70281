"""Removes the effects of faults from a node, without any knowledge of their run.

A fault can outlive its run (a kill -9, a lost connection, a crashed control node). It leaves marks before it breaks
anything: a note under `UNDO_DIRECTORY`, which is a script that undoes the fault; packet rules in chains named `LABRYS...`; and
marks of Labrys' volumes under the data of a system. Healing changes nothing else. Notes are idempotent and stay until they
succeed. They are in /run, so a reboot removes them together with the effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.daemon import ENVIRONMENT
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.remote import Remote

UNDO_DIRECTORY = "/run/labrys/undo"
CHAIN = "LABRYS"
# A volume for the data of each role: an image ROLE.img in the first directory, and marks in a folder ROLE of the second. The
# mark `data` has the path of the directory where the volume is mounted.
VOLUME_IMAGES = "/var/lib/labrys/volumes"
VOLUME_MARKS = "/run/labrys/volumes"
NOTE_TIMEOUT_S = 5
TIMEOUT_S = 30.0
MAX_REASON = 300

# Writes a line `healed NAME` or `failed NAME` for each note and chain. If a tool is missing, or the kernel has no tables,
# there is nothing to remove.
_UNDO = f"""
PATH=$PATH:/usr/sbin:/sbin
for note in {UNDO_DIRECTORY}/*; do
  [ -f "$note" ] || continue
  case $note in *.new) rm -f "$note"; continue;; esac
  if timeout NOTE_TIMEOUT sh "$note" >/dev/null; then rm -f "$note"; echo "healed ${{note##*/}}"
  else echo "failed ${{note##*/}}"; fi
done
for tables in iptables ip6tables; do
  command -v $tables >/dev/null 2>&1 || continue
  chains=$($tables -w 5 -S 2>/dev/null | sed -n 's/^-N \\({CHAIN}[^ ]*\\)$/\\1/p')
  [ -n "$chains" ] || continue
  for hook in INPUT OUTPUT FORWARD; do
    while $tables -w 5 -D $hook -j {CHAIN} 2>/dev/null; do :; done
  done
  for chain in $chains; do $tables -w 5 -F "$chain"; done
  for chain in $chains; do
    if $tables -w 5 -X "$chain"; then echo "healed $tables chain $chain"; else echo "failed $tables chain $chain"; fi
  done
done
"""
_FAILED = "failed "
_HEALED = "healed "


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """The result of healing one node.

    Attributes:
        healed: The names of the notes and chains that were undone.
        failed: The names of those that could not be undone.
        reason: The error output of the node.
    """

    healed: Sequence[str]
    failed: Sequence[str]
    reason: str


def undo_everything(remote: Remote, *, more: str = "") -> Healing:
    """Runs all notes on a node, and removes all chains of Labrys. Idempotent.

    Args:
        remote: The shell on the node.
        more: A script that runs afterwards, with output in the same form.

    Raises:
        NodeError: The node cannot be reached.
    """
    done = remote.run(
        _UNDO.replace("NOTE_TIMEOUT", f"{slowed(NOTE_TIMEOUT_S):g}") + more, timeout_s=TIMEOUT_S, check=False
    )
    lines = done.stdout.splitlines()
    return Healing(
        healed=[line.removeprefix(_HEALED) for line in lines if line.startswith(_HEALED)],
        failed=[line.removeprefix(_FAILED) for line in lines if line.startswith(_FAILED)],
        reason=done.stderr.strip()[-MAX_REASON:],
    )


def detaching() -> str:
    """Returns a script that unmounts the volumes of Labrys, and removes their images and marks."""
    return f"""for mark in {VOLUME_MARKS}/*; do
  [ -e "$mark/data" ] || continue
  old=$(cat "$mark/data"); image={VOLUME_IMAGES}/${{mark##*/}}.img
  for dev in $(losetup -j "$image" | cut -d: -f1); do
    for at in $(sed -n "s|^$dev \\([^ ]*\\) ext4 .*|\\1|p" /proc/mounts); do umount "$at" 2>/dev/null || umount -l "$at"; done
  done
  rm -rf "$image" "$mark"
  echo "detached $old"
done"""


def detach_volume(remote: Remote) -> bool:
    """Removes the volumes with their data, even if processes still use them.

    Returns:
        Whether there was a volume.

    Raises:
        NodeError: A volume cannot be removed, or the node cannot be reached.
    """
    return "detached" in remote.run(f"set -e\n{detaching()}", timeout_s=TIMEOUT_S).stdout


def forget_environment(remote: Remote) -> None:
    """Removes the environment of the faults, for all processes that start from now on.

    Raises:
        NodeError: The node cannot be reached.
    """
    remote.run(f"rm -f {ENVIRONMENT} {ENVIRONMENT}-*", timeout_s=TIMEOUT_S)
