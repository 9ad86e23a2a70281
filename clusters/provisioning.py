"""Provisions existing hosts: installs missing packages, and changes nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.remote import Remote

SCRIPT = Path(__file__).parent / "provision" / "node.sh"
PROVISION_TIMEOUT_S = 900.0
INSTALLED = "installed:"


def provision_host(remote: Remote, *, report: Callable[[str, str], None]) -> list[str]:
    """Installs the packages that systems and faults need on one host.

    Args:
        remote: The shell on the host.
        report: Receives the name of the host and the progress. The thread that provisions the host calls it.

    Returns:
        The installed packages; empty if nothing was missing.

    Raises:
        NodeError: The host cannot be reached, or a package cannot be installed. The message has the end of apt's output.
    """
    report(remote.node, "begins")
    done = remote.run("sh -s", stdin=SCRIPT.read_text(encoding="utf-8"), timeout_s=PROVISION_TIMEOUT_S)
    installed = [line.removeprefix(INSTALLED) for line in done.stdout.splitlines() if line.startswith(INSTALLED)]
    packages = " ".join(installed).split()
    report(remote.node, f"installed {', '.join(packages)}" if packages else "lacked nothing")
    return packages
