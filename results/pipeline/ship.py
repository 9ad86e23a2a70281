"""Brings Labrys to the executors of a cluster: an archive of what they run, native kernel included.

The law: what judges on a cluster is what judges here, byte by byte; so the running installation is packed, not another of the
same name. Only what executors import is in the archive: the rooms that judge, and the packages of workloads, which may judge.
Python itself, numpy, pyarrow and pandas have to be there already, or come in an archive of a whole virtual environment, as
`docs/spark.md` tells; then nothing is packed here.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.plugins import PLACE_SEPARATOR, WORKLOADS, plugins
from results.pipeline.session import OWN_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGES: Final = ("harness", "checker", "results")
KERNEL: Final = "checker._kernel"
FOLDER: Final = "labrys-package"
ARCHIVES: Final = "spark.archives"
PYTHON_PATH: Final = "spark.executorEnv.PYTHONPATH"


def pack(path: Path) -> None:
    """Writes the archive."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, file in _contents():
            archive.add(file, arcname=name, recursive=False)


def _contents() -> Iterator[tuple[str, Path]]:
    """Yields names in the archive and the files that they stand for."""
    for package in PACKAGES:
        root = _file_of(package).parent
        for file in sorted(root.rglob("*.py")):
            yield f"{package}/{file.relative_to(root)}", file
    yield from _of_workloads()
    kernel = _file_of(KERNEL)
    yield f"checker/{kernel.name}", kernel


def _of_workloads() -> Iterator[tuple[str, Path]]:
    """Yields the packages of all workloads that are installed; one that cannot be found is told of when it is chosen."""
    places = {plugin.place.partition(PLACE_SEPARATOR)[0].partition(".")[0] for plugin in plugins(WORKLOADS).values()}
    for name in sorted(places.difference(PACKAGES)):
        spec = importlib.util.find_spec(name)
        if spec is None:
            continue
        for root in map(Path, spec.submodule_search_locations or ()):
            for file in sorted(root.rglob("*.py")):
                yield f"{name}/{file.relative_to(root)}", file
        if spec.submodule_search_locations is None and spec.origin is not None:
            yield Path(spec.origin).name, Path(spec.origin)


def _file_of(module: str) -> Path:
    found = importlib.import_module(module).__file__
    if found is None:
        raise ImportError(f"{module} is in no file")
    return Path(found)


def shipped(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Returns the settings, beside these, that bring the archive, which is written to `folder`, to executors.

    Where the user ships a virtual environment (`spark.archives` with its own `spark.pyspark.python`), Labrys is in it, and
    nothing is added.
    """
    if ARCHIVES in settings and OWN_PYTHON in settings:
        return {}
    path = folder / f"{FOLDER}.tar.gz"
    pack(path)
    archives = [settings[ARCHIVES]] if ARCHIVES in settings else []
    python_path = [FOLDER, *([settings[PYTHON_PATH]] if PYTHON_PATH in settings else [])]
    return {
        ARCHIVES: ",".join([*archives, f"{path.as_uri()}#{FOLDER}"]),
        PYTHON_PATH: os.pathsep.join(python_path),
    }


def reachable(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings by which workers on this machine find the modules that a person may name, beside these."""
    known = [settings[PYTHON_PATH]] if PYTHON_PATH in settings else []
    return {PYTHON_PATH: os.pathsep.join([*known, str(Path.cwd())])}
