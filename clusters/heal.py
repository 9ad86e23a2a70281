"""Heals a node as far as a cluster can know what is broken: what bears our name, and what faults have noted down.

A fault that outlives its run has left a note on the node, a script under /run/labrys/undo that undoes it; packet rules are in
chains called LABRYS... . Both are undone here, whoever made them, and nothing else is touched. The nodes of a local cluster are
ours altogether, so there every traffic shaper goes too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.errors import ClusterError

if TYPE_CHECKING:
    from harness.remote import Remote

TIMEOUT_S = 30.0
CHAIN = "LABRYS"
NOTES = "/run/labrys/undo"
MAX_REASON = 300

# Writes a line `healed WHAT` or `failed WHAT` for everything it found. A note stays until it succeeds.
SCRIPT = rf"""
PATH=$PATH:/usr/sbin:/sbin
for note in {NOTES}/*; do
    [ -f "$note" ] || continue
    case $note in *.new) rm -f "$note"; continue ;; esac
    if timeout 5 sh "$note" >/dev/null; then rm -f "$note"; echo "healed ${{note##*/}}"; else echo "failed ${{note##*/}}"; fi
done
for tables in iptables ip6tables; do
    command -v $tables >/dev/null || continue
    chains=$($tables -w 5 -S 2>/dev/null | sed -n 's/^-N \({CHAIN}[^ ]*\)$/\1/p')
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
SHAPERS = r"""
for device in /sys/class/net/*; do
    device=${device##*/}
    kind=$(tc qdisc show dev "$device" root 2>/dev/null | sed -n 's/^qdisc \(netem\|tbf\) .*/\1/p')
    [ -n "$kind" ] || continue
    if tc qdisc del dev "$device" root; then echo "healed $kind on $device"; else echo "failed $kind on $device"; fi
done
"""


def heal(remote: Remote, *, ours: bool) -> list[str]:
    """Heals one node. Idempotent.

    Args:
        remote: The shell on the node.
        ours: Whether nobody else may have made a traffic shaper there.

    Returns:
        What was found and healed, in words.

    Raises:
        ClusterError: Something could not be healed.
        NodeError: The node cannot be reached.
    """
    done = remote.run(SCRIPT + (SHAPERS if ours else ""), timeout_s=TIMEOUT_S, check=False)
    lines = done.stdout.splitlines()
    failed = [line.removeprefix("failed ") for line in lines if line.startswith("failed ")]
    if failed:
        raise ClusterError(
            f"{remote.node}: cannot be healed of {', '.join(failed)}: {done.stderr.strip()[-MAX_REASON:]}"
        )
    return [line.removeprefix("healed ") for line in lines if line.startswith("healed ")]
