"""Copies a folder of this machine to a node, if the node does not have the same folder yet.

A local node sees this machine's files, and gets a link instead: copies for five nodes would take five times the memory.
"""

from __future__ import annotations

import functools
import shlex
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.errors import InfrastructureError, NodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.remote.protocol import Remote

PLACE = "/opt/labrys"  # the folder on a node for all that Labrys installs
TIMEOUT_S = 300.0


def put_folder(remote: Remote, here: Path, remote_path: str) -> None:
    """Makes the folder `remote_path` on a node the same as `here`. The folder `here` must not change meanwhile.

    Args:
        remote: The shell on the node.
        here: The folder on this machine.
        remote_path: The absolute path on the node; it is replaced if it differs.

    Raises:
        NodeError: The node cannot unpack the folder.
        InfrastructureError: The folder cannot be read here.
    """
    shows = cast("Callable[[Path], bool] | None", getattr(remote, "shows", None))
    is_shown = shows is not None and shows(here)
    wanted = "" if is_shown else digest(here)
    quoted, source = shlex.quote(remote_path), shlex.quote(str(here))
    parent = shlex.quote(str(Path(remote_path).parent))
    link = f"mkdir -p {parent} && rm -rf {quoted} && ln -s {source} {quoted}"
    same = f'[ -d {{0}} ] && [ "$({_digesting("{0}")})" = {shlex.quote(wanted)} ]'
    linked = remote.run(
        link if is_shown else f"{same.format(quoted)} || {{ {same.format(source)} && {link}; }}",
        check=False,
        timeout_s=TIMEOUT_S,
    )
    if linked.status != 0:
        _copy(remote, here, remote_path)


@functools.cache
def digest(folder: Path) -> str:
    """Returns the SHA-256 of a folder: of the names, links and contents of its files, and which of them are programs.

    It does not depend on the machine or on the umask.

    Raises:
        InfrastructureError: It cannot be read.
    """
    done = subprocess.run(
        ["sh", "-c", f"cd {shlex.quote(str(folder))} && {_digesting('.')}"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise InfrastructureError(f"{folder} cannot be read: {done.stderr.strip()}")
    return done.stdout.strip()


def _digesting(folder: str) -> str:
    """Returns a shell command that prints the digest of a folder; `folder` is a word of the shell."""
    return (
        f"tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=gnu -C {folder} -cf - . | "
        "sha256sum | cut -d' ' -f1"
    )


def _copy(remote: Remote, here: Path, remote_path: str) -> None:
    packed_there = f"{remote_path}.tar"
    quoted, packed_place = shlex.quote(remote_path), shlex.quote(packed_there)
    with tempfile.NamedTemporaryFile(suffix=".tar") as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(here, ".")
        packed.flush()
        remote.run(f"mkdir -p {shlex.quote(str(Path(remote_path).parent))}")
        remote.put(Path(packed.name), packed_there)
    unpacked = remote.run(
        f"rm -rf {quoted} && mkdir {quoted} && tar --no-same-owner -pxf {packed_place} -C {quoted} && rm {packed_place}",
        check=False,
        timeout_s=TIMEOUT_S,
    )
    if unpacked.status != 0:
        raise NodeError(remote.node, f"could not unpack {here.name} in {remote_path}: {unpacked.stderr.strip()}")
