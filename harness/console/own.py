"""Loads a file of Python that the user names, as in `--workload path/to/file.py:Class`.

The file becomes a module below this one. The name of the module has a digest of the file's bytes, so it meets no room of Labrys
and no other file of this name. Of two files with one name and the same bytes, the later one gets a digest of its path too,
because their neighbours can differ. The folder of the file goes behind all others in `sys.path`. So the file can import its
helpers, and no helper hides a module of Labrys.

A worker process finds such a module by its name: it searches `sys.path` for a file with this stem and these bytes.
`multiprocessing` gives its processes the `sys.path`, and `labrys analyze` gives the executors of Spark the file. A worker
never runs other code than its parent: if the file has changed, the import fails.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

SUFFIX = ".py"
DIGITS = 16  # of the digest, in hexadecimal
__path__: list[str] = []  # makes this module the parent of others


class _ByDigest:
    """Finds the modules below this one."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the search is in `sys.path`
        target: ModuleType | None = None,  # noqa: ARG002 - a reload finds the same file
    ) -> ModuleSpec | None:
        """Returns where a module is; None if it is not below this one.

        Raises:
            ImportError: No folder has the file with the bytes that the name tells.
        """
        parent, _, name = fullname.rpartition(".")
        stem, _, digest = name.rpartition("_")
        if parent != __name__ or len(digest) not in {DIGITS, 2 * DIGITS}:
            return None
        for folder in sys.path:
            file = Path(folder, stem + SUFFIX)
            if file.is_file() and digest in {_digest(file), _of_path(file) + _digest(file)}:
                return importlib.util.spec_from_file_location(fullname, file)
        raise ImportError(f"{stem}{SUFFIX} was changed or removed after it was loaded; run the command again")


sys.meta_path.append(_ByDigest())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:DIGITS]


def _of_path(file: Path) -> str:
    return hashlib.sha256(bytes(file.resolve())).hexdigest()[:DIGITS]


@functools.cache
def module_of(file: Path) -> ModuleType:
    """Returns the module of a file, which runs once in a process.

    Args:
        file: The absolute path.

    Raises:
        OSError: The file cannot be read.
        Exception: What the code of the file raises.
    """
    name = f"{__name__}.{file.stem}_{_digest(file)}"
    search(file.parent)
    module = importlib.import_module(name)
    if file.samefile(str(module.__file__)):
        return module
    return importlib.import_module(f"{__name__}.{file.stem}_{_of_path(file)}{_digest(file)}")


def readable(text: str) -> str:
    """Returns a text, such as an error of Python, with the names of files in place of the names of their modules."""
    return re.sub(rf"{re.escape(__name__)}\.(\S+?)_(?:[0-9a-f]{{{DIGITS}}}){{1,2}}", rf"\1{SUFFIX}", text)


def search(folder: Path) -> None:
    """Appends a folder to the places of modules, behind those of Labrys."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
