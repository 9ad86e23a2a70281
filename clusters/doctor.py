"""Looks for the programs and rights that this machine needs as a control node and for local nodes. It changes nothing.

Every finding has a purpose and a fix. Only a missing requirement of the local cluster counts as a failure.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from clusters.local.namespaces import find_program
from harness import capabilities as cap
from harness.console.installation import command_for, is_installed
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.capabilities import Capabilities

VERSION_TIMEOUT_S = 20.0
FILESYSTEMS = Path("/proc/filesystems")

# program, Debian package, purpose, whether a local cluster needs it
PROGRAMS = (
    ("ip", "iproute2", "network namespaces", True),
    ("tc", "iproute2", "slow and lossy networks", True),
    ("unshare", "util-linux", "local nodes", True),
    ("mount", "mount", "local nodes", True),
    ("sshd", "openssh-server", "SSH to nodes", True),
    ("iptables", "iptables", "partitions", True),
    ("ip6tables", "iptables", "partitions of IPv6 addresses", False),
    ("ssh", "openssh-client", "labrys cluster shell", False),
    ("losetup", "mount", "power loss, full disks", False),
    ("mkfs.ext4", "e2fsprogs", "power loss, full disks", False),
    ("vagrant", "vagrant", "--cluster vagrant", False),
)

FIXES: Mapping[str, str] = {
    cap.IPTABLES: "apt-get install iptables, on the node",
    cap.IP6TABLES: "apt-get install iptables, on the node; a kernel with IPv6 tables",
    cap.IPTABLES_STATISTIC: "a kernel with xt_statistic; `modprobe xt_statistic`",
    cap.NETEM: "a kernel with sch_netem; `modprobe sch_netem`; a `switch` does without it",
    cap.TBF: "a kernel with sch_tbf; `modprobe sch_tbf`",
    cap.CLOCK: "virtual machines (--cluster vagrant)",
    cap.FAKETIME: "apt-get install faketime, on the node",
    cap.LOOP_DEVICES: "a kernel with loop devices; `modprobe loop`",
    cap.DROP_CACHES: "a node whose /proc/sys can be written",
    cap.SWITCH: "a local cluster; `apt-get install cargo gcc`, and /dev/net/tun (`modprobe tun`)",
    cap.ROOT: "a login as root, or sudo without a password",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        what: A program, a right, or a capability.
        ok: Whether it is present.
        needed: Whether a local cluster requires it.
        detail: Its path, its purpose, or why it is missing.
        fix: How to get it; empty if it is present.
    """

    what: str
    ok: bool
    needed: bool
    detail: str
    fix: str = ""


def examine_machine(
    programs: Sequence[Program] = (),
    find: Callable[[str], str | None] = find_program,
    libraries: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Looks at this machine's programs, rights and kernel.

    Args:
        programs: What the system under test needs on its nodes.
        find: Returns a program's path.
        libraries: What the clients of the system need here; see `harness.system.System`.
    """
    own = (
        (Program(name=name, package=package, purpose=purpose), needed) for name, package, purpose, needed in PROGRAMS
    )
    systems = ((program, not program.build_only) for program in programs)
    return [
        *(_program(program, find(program.name), needed=needed) for program, needed in (*own, *systems)),
        *(_library(module, extra) for module, extra in libraries.items()),
        _root(),
        _overlay(),
    ]


def _library(module: str, extra: str) -> Finding:
    ok = is_installed(module)
    fix = "" if ok else command_for(extra)
    return Finding(what=module, ok=ok, needed=True, detail="a library of the clients", fix=fix)


def examine_nodes(capabilities: Mapping[str, Capabilities]) -> list[Finding]:
    """Returns one finding for each capability, over all nodes."""
    findings = []
    for name in cap.NAMES:
        reasons: dict[str, list[str]] = {}
        for node, can in capabilities.items():
            if name not in can.available:
                reasons.setdefault(can.missing.get(name, "not found"), []).append(node)
        able = len(capabilities) - sum(map(len, reasons.values()))
        findings.append(
            Finding(
                what=name,
                ok=not reasons,
                needed=name in {cap.ROOT, cap.IPTABLES},
                detail="; ".join(f"{', '.join(nodes)}: {reason}" for reason, nodes in reasons.items())
                or f"{able} of {len(capabilities)} nodes",
                fix=FIXES[name] if reasons else "",
            )
        )
    return findings


def as_lines(findings: Sequence[Finding]) -> list[str]:
    """Returns the findings as aligned lines."""
    width = max((len(finding.what) for finding in findings), default=0)
    lines = []
    for finding in findings:
        mark = "ok" if finding.ok else "MISSING" if finding.needed else "missing"
        lines.append(
            f"{mark:<8} {finding.what:<{width}}  {finding.detail}{f' -> {finding.fix}' if finding.fix else ''}"
        )
    return lines


def _program(program: Program, path: str | None, *, needed: bool) -> Finding:
    fix = f"apt-get install {program.package}"
    if path is None:
        detail = f"not on PATH; for {program.purpose}"
        return Finding(what=program.name, ok=False, needed=needed, detail=detail, fix=fix)
    if program.least_version is not None:
        version = _version(path, program)
        if version is None or version < program.least_version:
            actual = version or "of an unknown version"
            detail = f"{path} is {actual}, not {program.least_version} or later; for {program.purpose}"
            return Finding(what=program.name, ok=False, needed=needed, detail=detail, fix=fix)
    return Finding(what=program.name, ok=True, needed=needed, detail=f"{path}; for {program.purpose}")


def _version(path: str, program: Program) -> int | None:
    try:
        done = subprocess.run(
            [path, *program.version_arguments],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # the finding shows an unknown version
    return program.version(done.stderr + done.stdout)


def _root() -> Finding:
    is_root = os.geteuid() == 0
    return Finding(
        what="root",
        ok=is_root,
        needed=True,
        detail="for network namespaces" if is_root else "not root; only root can make network namespaces",
        fix="" if is_root else "sudo, or machines of your own (--cluster ssh)",
    )


def _overlay() -> Finding:
    names = [line.split()[-1] for line in FILESYSTEMS.read_text().splitlines() if line]
    is_known = "overlay" in names
    # A kernel lists a module only after it is loaded. The first mount loads it.
    return Finding(
        what="overlay",
        ok=is_known,
        needed=False,
        detail="for the nodes' files" if is_known else "the kernel does not list it (yet); for the nodes' files",
        fix="" if is_known else "`modprobe overlay`",
    )
