"""Brings Labrys to the executors of a cluster: an archive of what they run, native kernel included.

The law: what judges on a cluster is what judges here, byte by byte; so the running installation is packed, not another of the
same name. Only what executors import is in the archive: the rooms that judge, the packages of workloads, which may judge, and
those of models. Python itself, numpy, pyarrow and pandas have to be there already, or come in an archive of a whole virtual
environment, as `docs/spark.md` tells; then only the modules that a person names are packed here.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.plugins import MODELS, PLACE_SEPARATOR, WORKLOADS, plugins
from results.pipeline.session import OWN_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGES: Final = ("harness", "checker", "results")
KERNEL: Final = "checker._kernel"
FOLDER: Final = "labrys-package"
ARCHIVES: Final = "spark.archives"
PYTHON_PATH: Final = "spark.executorEnv.PYTHONPATH"


def pack(path: Path, contents: Mapping[str, Path]) -> None:
    """Writes the archive of files by their names in it."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, file in contents.items():
            archive.add(file, arcname=name, recursive=False)


def _contents() -> Iterator[tuple[str, Path]]:
    """Yields names in the archive and the files that they stand for."""
    for package in PACKAGES:
        root = _file_of(package).parent
        for file in sorted(root.rglob("*.py")):
            yield f"{package}/{file.relative_to(root)}", file
    for package in sorted(
        {_package_of(plugin.place) for each in (WORKLOADS, MODELS) for plugin in plugins(each).values()}
    ):
        if package not in PACKAGES:
            yield from _of_package(package)
    kernel = _file_of(KERNEL)
    yield f"checker/{kernel.name}", kernel


def _package_of(place: str) -> str:
    return place.partition(PLACE_SEPARATOR)[0].partition(".")[0]


def _of_package(name: str) -> Iterator[tuple[str, Path]]:
    """Yields the files of a package or a module; one that cannot be found is told of when it is chosen."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return
    for root in map(Path, spec.submodule_search_locations or ()):
        for file in sorted(root.rglob("*.py")):
            yield f"{name}/{file.relative_to(root)}", file
    if spec.submodule_search_locations is None and spec.origin is not None:
        yield Path(spec.origin).name, Path(spec.origin)


def _of_place(place: str) -> Iterator[tuple[str, Path]]:
    """Yields the files of a module that a person named and that is loaded, and of those beside it that are loaded too."""
    package = _package_of(place)
    folder = _folder_of(package)
    for name in sorted({each.partition(".")[0] for each in list(sys.modules)}):
        if name == package or (folder == Path.cwd() and _folder_of(name) == folder and name not in PACKAGES):
            yield from _of_package(name)


def _folder_of(name: str) -> Path | None:
    """Returns the folder in which a package or a module of the top lies; None if it is in none."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None or name == "__main__":
        return None
    return Path(file).parents[1 if hasattr(module, "__path__") else 0]


def _file_of(module: str) -> Path:
    found = importlib.import_module(module).__file__
    if found is None:
        raise ImportError(f"{module} is in no file")
    return Path(found)


def shipped(settings: Mapping[str, str], folder: Path, named: str | None = None) -> dict[str, str]:
    """Returns the settings, beside these, that bring the archive, which is written to `folder`, to executors.

    Where the user ships a virtual environment (`spark.archives` with its own `spark.pyspark.python`), Labrys is in it, and
    only the module that a person names is added.

    Args:
        settings: Those that are known.
        folder: Where the archive is written.
        named: The model or the workload that a person names; a `module:Class` is loaded, and its module is in the archive.
    """
    contents: dict[str, Path] = {}
    if not (ARCHIVES in settings and OWN_PYTHON in settings):
        contents.update(_contents())
    if named is not None and PLACE_SEPARATOR in named:
        contents.update(_of_place(named))
    if not contents:
        return {}
    path = folder / f"{FOLDER}.tar.gz"
    pack(path, contents)
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
