"""Files with a checksum. A promise, such as a term, is in two files, so one damaged file loses nothing."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from clusters.sim.host import DiskError

if TYPE_CHECKING:
    from clusters.sim.host import Disk

_CHECKSUM_BYTES: Final = 4
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"))
_COPY: Final = "copy"


class DamagedFileError(Exception):
    """The content of a file, or of both files of a promise, does not fit its checksum."""


def write(disk: Disk, name: str, content: Any, *, sync: bool = True, trusts: bool = False) -> None:
    """Replaces a file.

    Args:
        disk: The disk.
        name: The name of the file.
        content: The content, as data that JSON has.
        sync: Whether the content must survive a power loss from now on.
        trusts: Whether a failed sync counts as one that worked; only with a planted bug.

    Raises:
        OSError: The disk is full, and the file is as it was; or the disk has an error.
    """
    body = _COMPACT.encode(content).encode()
    disk.write(name, zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") + body)
    if sync:
        with suppress(*([DiskError] if trusts else [])):
            disk.sync(name)


def read(disk: Disk, name: str) -> Any:
    """Returns the content of a file.

    Raises:
        DamagedFileError: The content does not fit its checksum.
    """
    whole = disk.read(name)
    checksum, body = whole[:_CHECKSUM_BYTES], whole[_CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise DamagedFileError(f"the file {name} is damaged: its checksum does not fit its {len(body)} bytes")
    return json.loads(body)


def write_again(disk: Disk) -> None:
    """Writes and syncs all files again if the disk has had an error: a failed sync leaves what no later one makes durable.

    Raises:
        OSError: The disk is full, or has an error again.
    """
    if disk.errors:
        for name in disk.names():
            disk.write(name, disk.read(name))
            disk.sync(name)


def write_promise(disk: Disk, kind: str, key: str, content: list[Any]) -> None:
    """Replaces both files of a promise, and syncs them. Its first item is a version.

    Raises:
        OSError: The disk is full.
    """
    write(disk, f"{kind}-{key}", content)
    write(disk, f"{kind}-{_COPY}-{key}", content)


def read_promises(disk: Disk, kind: str) -> dict[str, list[Any]]:
    """Returns the newest whole copy of each promise of a kind, by key.

    Raises:
        DamagedFileError: Both files of a promise are damaged.
    """
    promises: dict[str, list[Any]] = {}
    damaged: dict[str, DamagedFileError] = {}
    for name in disk.names():
        if not name.startswith(f"{kind}-"):
            continue
        key = name.removeprefix(f"{kind}-").removeprefix(f"{_COPY}-")
        try:
            content = read(disk, name)
        except DamagedFileError as error:
            damaged[key] = error
            continue
        if key not in promises or content[0] > promises[key][0]:
            promises[key] = content
    for key, why in damaged.items():
        if key not in promises:
            raise why
    return promises
