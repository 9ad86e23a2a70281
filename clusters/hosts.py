"""Finds what each host of an inventory lacks, and how to install it.

It looks over SSH, on all hosts at once, and changes nothing.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import paramiko

from clusters.doctor import Finding
from harness.cluster import on_nodes
from harness.errors import LabrysError, NodeError, NodeUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clusters.machines import MachineCluster
    from harness.node import Node
    from harness.remote.fabric import Endpoint
    from harness.traits import Program

TIMEOUT_S = 30.0
MAX_OFFSET_S = 1.0
MIN_FREE_KB = 1_048_576
MAX_OUTPUT = 200

# The script reads the clock first, so that the reading lies close to the time of the request. $@ are programs, each with the
# arguments for its version.
SCRIPT = r"""
PATH=$PATH:/usr/sbin:/sbin
printf 'clock\t%s\n' "$(date +%s.%N)"
printf 'user\t%s\n' "$(id -u)"
printf 'disk\t%s\n' "$(df -Pk / | tail -n 1 | tr -s ' ' '\t' | cut -f 4)"
for words in "$@"; do
    program=${words%% *}
    path=$(command -v "$program") || continue
    printf 'program\t%s\t%s\n' "$program" "$("$path" ${words#* } 2>&1 | tr '\n\t' '  ' | cut -c 1-200)"
done
:
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """What the script found on a host.

    Attributes:
        offset_s: By how many seconds its clock is at least ahead of ours; negative if it is behind.
        is_root: Whether commands run as root.
        free_kb: Free kibibytes in `/`; None if unknown.
        programs: Each program that is present, with what it prints about its version.
    """

    offset_s: float
    is_root: bool
    free_kb: int | None
    programs: dict[str, str]


def examine_hosts(cluster: MachineCluster, programs: Sequence[Program]) -> tuple[list[Finding], list[Node]]:
    """Looks at each host.

    Args:
        cluster: The hosts.
        programs: The programs that the system under test needs on its nodes.

    Returns:
        The findings: one for each thing that a host lacks, and one for each thing that all hosts have. Then the hosts on which
        commands run as root.
    """
    states = on_nodes(cluster.nodes, lambda node: _examine(cluster, node, programs))
    problems: dict[str, list[Finding]] = {}
    usable = []
    for node in cluster.nodes:
        state = states[node.name]
        endpoint = cluster.endpoints[node.name]
        if isinstance(state, LabrysError):
            problems.setdefault("SSH", []).append(_unreachable(state, endpoint))
        elif isinstance(state, Exception):
            raise state
        else:
            of_node = list(_problems(node.name, state, endpoint, programs))
            for finding in of_node:
                problems.setdefault(finding.what, []).append(finding)
            if state.is_root:
                usable.append(node)
    names = ["SSH", "sudo", "clock", "disk", *(program.name for program in programs if not program.build_only)]
    findings: list[Finding] = []
    for name in names:
        detail = f"{len(cluster.nodes)} of {len(cluster.nodes)} hosts"
        unknown = [finding for finding in problems.get("SSH", ()) if name != "SSH"]
        if name not in problems and not unknown:
            findings.append(Finding(what=name, ok=True, needed=True, detail=detail))
        findings += problems.get(name, [])
    return findings, usable


def _examine(cluster: MachineCluster, node: Node, programs: Sequence[Program]) -> HostState:
    wanted = [" ".join([program.name, *program.version_arguments]) for program in programs if not program.build_only]
    remote = cluster.remote(node)
    remote.run("true", check=False)  # makes the connection, so that it does not widen the reading of the clock
    before_s = time.time()
    answer = remote.run(_with_arguments(wanted), timeout_s=TIMEOUT_S, check=False)
    after_s = time.time()
    values: dict[str, str] = {}
    versions: dict[str, str] = {}
    for line in answer.stdout.splitlines():
        what, _, rest = line.partition("\t")
        if what == "program":
            name, _, version = rest.partition("\t")
            versions[name] = version
        else:
            values[what] = rest
    if not values and answer.status != 0:  # `sudo` refused
        return HostState(offset_s=0.0, is_root=False, free_kb=None, programs={})
    try:
        clock_s = float(values["clock"])
        is_root = int(values["user"]) == 0
        free_kb = int(values["disk"]) if values["disk"] else None
    except (KeyError, ValueError) as error:
        raise NodeError(
            node.name, f"expected a clock, a user and a disk, found {answer.stdout[:MAX_OUTPUT]!r}"
        ) from error
    offset_s = min(clock_s - before_s, 0.0) + max(clock_s - after_s, 0.0)
    return HostState(offset_s=offset_s, is_root=is_root, free_kb=free_kb, programs=versions)


def _with_arguments(words: Sequence[str]) -> str:
    return f"set -- {shlex.join(words)}\n{SCRIPT}"


def _unreachable(error: LabrysError, endpoint: Endpoint) -> Finding:
    """Returns the finding for a host that SSH cannot reach; the fix depends on the error of SSH."""
    cause = error.__cause__
    port = "" if endpoint.port == 22 else f" -p {endpoint.port}"
    fix = f"`ssh{port} {endpoint.user}@{endpoint.host} true` shows why"
    if isinstance(cause, paramiko.BadHostKeyException):
        name = endpoint.host if endpoint.port == 22 else f"[{endpoint.host}]:{endpoint.port}"
        fix = f"if the host was made again, `ssh-keygen -R '{name}' -f {endpoint.known_hosts}` and take its new key"
        if endpoint.host_key is not None:
            fix = f"if the host was made again, give the host_key that `ssh-keyscan{port} {endpoint.host}` shows"
    elif isinstance(cause, paramiko.AuthenticationException):
        fix = f"`ssh-copy-id -i {endpoint.key}{port} {endpoint.user}@{endpoint.host}`"
    elif isinstance(cause, paramiko.SSHException) and "known_hosts" in str(cause):
        fix = f"`ssh-keyscan{port} {endpoint.host} >>{endpoint.known_hosts}`, and compare the key with the host's own"
    elif not isinstance(error, NodeUnreachable):
        fix = f"`ssh{port} {endpoint.user}@{endpoint.host}` shows the output of its shell"
    return Finding(what="SSH", ok=False, needed=True, detail=str(error), fix=fix)


def _problems(name: str, state: HostState, endpoint: Endpoint, programs: Sequence[Program]) -> Iterator[Finding]:
    if not state.is_root:
        user = endpoint.user
        yield Finding(
            what="sudo",
            ok=False,
            needed=True,
            detail=f"{name}: {user} cannot run commands as root without a password",
            fix=f"`echo '{user} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/labrys`, as root on the host",
        )
        return  # the script did not run
    if abs(state.offset_s) > MAX_OFFSET_S:
        side = "ahead of" if state.offset_s > 0 else "behind"
        yield Finding(
            what="clock",
            ok=False,
            needed=False,
            detail=f"{name}: its clock is {abs(state.offset_s):.1f} s {side} this machine's",
            fix="`timedatectl set-ntp true` on the host, or `labrys cluster heal` after a clock fault",
        )
    if state.free_kb is not None and state.free_kb < MIN_FREE_KB:
        yield Finding(
            what="disk",
            ok=False,
            needed=True,
            detail=f"{name}: {state.free_kb // 1024} MiB are free in /, not {MIN_FREE_KB // 1024}",
            fix="remove files on the host",
        )
    for program in programs:
        if program.build_only:
            continue
        why = program.lacking(state.programs.get(program.name))
        if why:
            yield Finding(
                what=program.name,
                ok=False,
                needed=True,
                detail=f"{name}: {why}; for {program.purpose}",
                fix=f"`labrys cluster provision --inventory FILE`, or `apt-get install {program.package}` on the host",
            )
