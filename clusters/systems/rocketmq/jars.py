"""The released jars of a version of RocketMQ, on this machine and on nodes."""

from __future__ import annotations

import functools
import hashlib
import shlex
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InfrastructureError, NodeError

if TYPE_CHECKING:
    from harness.remote import Remote

MODULE = Path(__file__).parent / "jars"
PUT_TIMEOUT_S = 300.0


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
    """Copies the jars to a node, if they are not there yet.

    A local node sees this machine's files, and gets a link instead. The jars of a release never change, and copies for five
    nodes would take 360 MB of memory.

    Raises:
        NodeError: The node cannot unpack the jars.
        InfrastructureError: The jars are missing on this machine.
    """
    here = folder(version)
    there, wanted = node_folder(version), digest(here)
    is_same = '[ "$(cd {} 2>/dev/null && LC_ALL=C && cat -- *.jar 2>/dev/null | sha256sum)" = \'' + wanted + "  -' ]"
    is_installed, is_visible = is_same.format(there), is_same.format(shlex.quote(str(here)))
    link = f"mkdir -p {Path(there).parent} && rm -rf {there} && ln -s {shlex.quote(str(here))} {there}"
    linked = remote.run(
        f"{is_installed} || {{ {is_visible} && {link}; }}",
        check=False,
        timeout_s=PUT_TIMEOUT_S,
    )
    if linked.status != 0:
        _copy(remote, here, there)


def _copy(remote: Remote, here: Path, there: str) -> None:
    packed_there = f"{there}.tar"
    with tempfile.NamedTemporaryFile(suffix=".tar") as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for jar in sorted(here.glob("*.jar")):
                archive.add(jar, jar.name)
        packed.flush()
        remote.run(f"mkdir -p {Path(there).parent}")
        remote.put(Path(packed.name), packed_there)
    unpacked = remote.run(
        f"rm -rf {there} && mkdir {there} && tar -xf {packed_there} -C {there} && rm {packed_there}",
        check=False,
        timeout_s=PUT_TIMEOUT_S,
    )
    if unpacked.status != 0:
        raise NodeError(remote.node, f"could not unpack the jars of RocketMQ in {there}: {unpacked.stderr.strip()}")
