"""Files over SFTP: replaces a file in one step, reads growing files, and separates local errors from remote ones."""

from __future__ import annotations

import contextlib
import secrets
from typing import IO, TYPE_CHECKING, TypeAlias

from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import paramiko

CHUNK_BYTES = 32768
READ_AHEAD = 64

Content: TypeAlias = "Iterable[bytes]"


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yields the rest of an open file."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def replace(sftp: paramiko.SFTPClient, content: Content, path: str, *, mode: int) -> None:
    """Writes a file beside `path`, never readable beyond `mode`, and renames it.

    It waits for the answer to each chunk. Pipelined writes would be faster, but paramiko drops their errors.
    """
    temporary = f"{path}.labrys-{secrets.token_hex(8)}"
    try:
        with sftp.open(temporary, "wx") as file:
            file.chmod(mode)
            for chunk in content:
                file.write(chunk)
        sftp.posix_rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to raise
            sftp.remove(temporary)
        raise


def fetch(sftp: paramiko.SFTPClient, path: str, local: Path) -> None:
    """Copies a file of the node to a local path; of a growing file, at least the content at the beginning.

    Raises:
        InfrastructureError: The local file cannot be written.
    """
    with sftp.open(path, "rb") as file, contextlib.ExitStack() as stack:
        file.prefetch(file.stat().st_size, READ_AHEAD)
        with _here(local):
            target = stack.enter_context(local.open("wb", buffering=0))
        while chunk := file.read(CHUNK_BYTES):
            with _here(local):
                target.write(chunk)


@contextlib.contextmanager
def _here(path: Path) -> Iterator[None]:
    """Turns an OSError with a local file into an InfrastructureError."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot be written on this machine: {error.strerror}") from error
