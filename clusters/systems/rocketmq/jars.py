"""The released jars of a version of RocketMQ, on this machine and on nodes."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InfrastructureError
from harness.remote.folders import put_folder

if TYPE_CHECKING:
    from harness.remote import Remote

MODULE = Path(__file__).parent / "jars"


def folder(version: str) -> Path:
    """Returns the folder of a release's jars on this machine.

    Raises:
        InfrastructureError: The jars are missing; the message shows how to get them.
    """
    place = MODULE / "target" / version
    if not any(place.glob("rocketmq-controller-*.jar")):
        raise InfrastructureError(
            f"{place} lacks the jars of RocketMQ {version}; "
            f"`mvn -f {MODULE / 'pom.xml'} prepare-package -Drocketmq.version={version}` gets them (`make` gets those of 5.3.3)"
        )
    return place


def node_folder(version: str) -> str:
    """Returns the folder of a release's jars on a node."""
    return f"/opt/labrys/rocketmq-{version}"


@functools.cache
def digest(place: Path) -> str:
    """Returns the SHA-256 of all jars, concatenated in the order of their names."""
    found = hashlib.sha256()
    for jar in sorted(place.glob("*.jar")):
        found.update(jar.read_bytes())
    return found.hexdigest()


def install(remote: Remote, version: str) -> None:
    """Copies the jars to a node, if they are not there yet. The jars of a release never change.

    Raises:
        NodeError: The node cannot unpack the jars.
        InfrastructureError: The jars are missing on this machine.
    """
    put_folder(remote, folder(version), node_folder(version))
