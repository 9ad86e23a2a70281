"""Heals a node: removes the packet rules, the volumes and the other effects of faults that any run left there.

Healing finds them by the names that Labrys gives them, and by the notes of faults; see `harness.healing`. It changes nothing
else. Nodes of a local cluster belong to Labrys, so healing removes every traffic shaper there too.
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
    """Heals one node. Idempotent.

    It removes a volume together with the data on it, so no run may use the node meanwhile.

    Args:
        remote: The shell on the node.
        ours: Whether the node belongs to Labrys, so that every traffic shaper there is one of Labrys.

    Returns:
        A short text for each thing that was healed.

    Raises:
        ClusterError: Something cannot be healed.
        NodeError: The node cannot be reached.
    """
    undone = undo_everything(remote, more=SHAPERS if ours else "")
    healed = [*undone.healed]
    if detach_volume(remote):
        healed.append("a volume under the data of a system")
    forget_environment(remote)
    if undone.failed:
        raise ClusterError(f"{remote.node}: cannot be healed of {', '.join(undone.failed)}: {undone.reason}")
    return healed
