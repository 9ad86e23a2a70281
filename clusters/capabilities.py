"""Probes the capabilities of a node.

Each probe tries a capability on a small object with a name of its own, and removes the object. It changes nothing that a
fault or the owner of the node uses. One command runs all probes of a node, so they take one round trip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import capabilities as cap
from harness.capabilities import Capabilities
from harness.errors import NodeError

if TYPE_CHECKING:
    from harness.remote import Remote

PROBE_TIMEOUT_S = 30.0
SHARED_CLOCK = "the node shares this machine's clock; only a virtual or real machine has its own"
NO_SWITCH = "only nodes of a local cluster have a switch of Labrys between them"
MAX_REASON = 200

# Each line of the output is `name<TAB>status<TAB>output`. Each probe first removes what an interrupted probe left.
SCRIPT = r"""
PATH=$PATH:/usr/sbin:/sbin
probe() { # NAME COMMAND...
    name=$1; shift
    output=$("$@" 2>&1); status=$?
    printf '%s\t%s\t%s\n' "$name" "$status" "$(printf %s "$output" | tr '\n\t' '  ' | tail -c 200)"
}
no_chain() { "$1" -w 5 -F LABRYS-PROBE; "$1" -w 5 -X LABRYS-PROBE; }
chain() { # PROGRAM RULE...
    program=$1; shift
    no_chain "$program" >/dev/null 2>&1
    "$program" -w 5 -N LABRYS-PROBE || return
    "$program" -w 5 -A LABRYS-PROBE "$@"; result=$?
    no_chain "$program"
    return $result
}
qdisc() { # KIND OPTIONS...
    ip link delete labrys-probe 2>/dev/null
    ip link add labrys-probe type dummy 2>/dev/null || ip link add labrys-probe type veth peer name labrys-peer || return
    tc qdisc add dev labrys-probe root "$@"; result=$?
    ip link delete labrys-probe
    return $result
}
root() { [ "$(id -u)" -eq 0 ] || { echo "commands run as $(id -un)"; return 1; }; }
contained() {
    systemd-detect-virt --container --quiet 2>/dev/null || [ -e /.dockerenv ] || [ -e /run/.containerenv ] ||
        tr '\0' '\n' </proc/1/environ | grep -q '^container='
}
clock() { # checks the right to set the clock (CAP_SYS_TIME is bit 25) and bash 5, and does not set the clock
    if contained; then echo "a container shares the clock of its machine"; return 1; fi
    rights=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
    [ $((0x$rights >> 25 & 1)) -eq 1 ] || { echo "the right to set the clock (CAP_SYS_TIME) is missing"; return 1; }
    [ -n "$(bash -c 'echo $EPOCHREALTIME' 2>/dev/null)" ] || { echo "bash 5 or later is not installed"; return 1; }
}
faketime() {
    for library in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1; do
        [ -e "$library" ] && return
    done
    echo "libfaketime is not installed"; return 1
}
loop() {
    image=$(mktemp) && truncate -s 1M "$image" || return
    device=$(losetup --find --show "$image"); result=$?
    [ $result -ne 0 ] || losetup --detach "$device"
    rm -f "$image"
    return $result
}
caches() { [ -w /proc/sys/vm/drop_caches ] || { echo "/proc/sys/vm/drop_caches cannot be written"; return 1; }; }
probe root root
probe iptables chain iptables -s 192.0.2.1 -j DROP
probe ip6tables chain ip6tables -s 2001:db8::1 -j DROP
probe iptables-statistic chain iptables -m statistic --mode random --probability 0.5 -j DROP
probe netem qdisc netem delay 1ms
probe tbf qdisc tbf rate 1mbit burst 10kb latency 50ms
probe clock clock
probe faketime faketime
probe loop-devices loop
probe drop-caches caches
"""


def probe(remote: Remote, *, own_clock: bool, no_switch: str = NO_SWITCH) -> Capabilities:
    """Probes one node.

    Args:
        remote: The shell on the node.
        own_clock: Whether the node has a clock of its own. If False, it shares the clock of this machine, and the capability
            to set the clock is missing whatever its probe finds.
        no_switch: Why there can be no switch between the nodes; empty: there can be one.

    Raises:
        NodeError: The node does not answer, or its answer has an unexpected form.
    """
    answer = remote.run(SCRIPT, timeout_s=PROBE_TIMEOUT_S, check=False)
    seen: dict[str, tuple[str, str]] = {}
    for line in answer.stdout.splitlines():
        name, _, rest = line.partition("\t")
        status, _, output = rest.partition("\t")
        seen[name] = status, output.strip()[:MAX_REASON]
    if not seen and answer.status != 0:
        reason = f"no command runs as root there:  {answer.stderr.strip()[:MAX_REASON]}"
        return Capabilities(available=frozenset(), missing=dict.fromkeys(cap.NAMES, reason))
    if set(seen) != set(cap.PROBED):
        lacking = ", ".join(sorted(set(cap.PROBED) - set(seen)))
        raise NodeError(
            remote.node, f"the probe of its capabilities gave no answer for {lacking}: {answer.stderr.strip()}"
        )
    missing = {name: output or f"status {status}" for name, (status, output) in seen.items() if status != "0"}
    if not own_clock:
        missing[cap.CLOCK] = SHARED_CLOCK
    if no_switch:
        missing[cap.SWITCH] = no_switch
    return Capabilities(available=frozenset(cap.NAMES) - set(missing), missing=missing)
