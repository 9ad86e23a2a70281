"""What the server gives of a run's folder: its files, and the archive of it."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harness.console import below
from harness.console.plain import name, plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from results.store.store import Run


MAX_DEPTH = 16
MAX_PATH = 1000
LEFT_OUT = "labrys-left-out.txt"
TEXT = "text/plain; charset=utf-8"
TYPES = {
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    **dict.fromkeys((".jsonl", ".edn", ".log", ".txt", ".xml", ".toml", ".html", ".out", ".properties"), TEXT),
}


def archive_of(run: Run) -> tuple[list[Path], list[str]]:
    """Returns the readable files of a run, and a line for each entry that the archive leaves out.

    Raises:
        OSError: A file or a folder cannot be read.
    """
    files: list[Path] = []
    left_out: list[str] = []
    for path, about in below.walk(run.path, run.path, deepest=MAX_DEPTH):
        relative = path.relative_to(run.path)
        if stat.S_ISREG(about.st_mode):
            below.open_file(run.path, path).close()
            files.append(path)
        elif not stat.S_ISDIR(about.st_mode):
            left_out.append(
                f"{name(str(relative), MAX_PATH)}: {below.LINK if stat.S_ISLNK(about.st_mode) else below.SPECIAL}"
            )
        elif len(relative.parts) > MAX_DEPTH:
            left_out.append(f"{name(str(relative), MAX_PATH)}: lies more than {MAX_DEPTH} folders deep")
    return files, left_out


def write_archive(sink: Any, run: Run, files: Sequence[Path], left_out: Sequence[str], *, folder: str) -> None:
    """Writes an archive of a run.

    Args:
        sink: The file to write to.
        run: The run.
        files: Its files; see `archive_of`.
        left_out: The lines about what is left out. With some, the archive has a file `LEFT_OUT`.
        folder: The folder in the archive.

    Raises:
        OSError: A file cannot be read, or the archive cannot be written.
    """
    archive = zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False)
    try:
        for path in files:
            with (
                below.open_file(run.path, path) as file,
                archive.open(plain(f"{folder}/{path.relative_to(run.path)}"), "w", force_zip64=True) as entry,
            ):
                shutil.copyfileobj(file, entry)
        if left_out:
            archive.writestr(plain(f"{folder}/{LEFT_OUT}"), "".join(f"{line}\n" for line in left_out))
        archive.close()
    finally:
        # Without a table of contents, nobody takes an incomplete archive for a complete one.
        archive.fp = None


def inside(run: Run, rest: Sequence[str]) -> Path | None:
    """Returns the path of these names below a run; None if one of them cannot be the name of a file."""
    if any(part in {".", ".."} or "/" in part or "\0" in part for part in rest):
        return None
    return run.path.joinpath(*rest)


def quoted(text: str) -> str:
    """Returns a file name of any bytes as a part of an address."""
    return quote(os.fsencode(text), safe="")


def copy(source: Any, sink: Any, length: int) -> None:
    """Copies exactly `length` bytes; a growing file must not exceed the announced length."""
    left = length
    while left > 0:
        data = source.read(min(left, 1 << 18))
        if not data:
            break
        sink.write(data)
        left -= len(data)
