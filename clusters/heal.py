"""Heals a node by the marks of Labrys: names of packet rules and volumes, and the notes of faults.

Healing undoes notes, chains of packet rules and volumes of any run; see `harness.healing`. It changes nothing else. But nodes
of a local cluster belong to Labrys, so there it removes every traffic shaper too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.errors import ClusterError
from harness.healing import detach_volume, forget_environment, undo_everything

if TYPE_CHECKING:
    from harness.remote import Remote

SHAPERS = r"""
for device in /sys/class/net/*; do
    device=${device##*/}
    kind=$(tc qdisc show dev "$device" root 2>/dev/null | sed -n 's/^qdisc \(netem\|tbf\) .*/\1/p')
    [ -n "$kind" ] || continue
    if tc qdisc del dev "$device" root; then echo "healed $kind on $device"; else echo "failed $kind on $device"; fi
done
"""


def heal(remote: Remote, *, ours: bool) -> list[str]:
    """Heals one node. Idempotent. A volume goes with the data on it, so no run may be using the node.

    Args:
        remote: The shell on the node.
        ours: Whether nobody else may have made a traffic shaper there.

    Returns:
        What was found and healed, in words.

    Raises:
        ClusterError: Something could not be healed.
        NodeError: The node cannot be reached.
    """
    found = undo_everything(remote, more=SHAPERS if ours else "")
    healed = [*found.healed]
    if detach_volume(remote):
        healed.append("a volume under the data of a system")
    forget_environment(remote)
    if found.failed:
        raise ClusterError(f"{remote.node}: cannot be healed of {', '.join(found.failed)}: {found.reason}")
    return healed
