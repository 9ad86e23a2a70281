"""Brings Labrys to the executors of a cluster: an archive of the code that they run, with the native kernel.

The rule: executors run the same code as this process, byte by byte. So the archive contains the running installation. It has
only what executors import: the packages that judge, those of workloads, which may have a checker of their own, and those of
models. If executors run systems, it has all packages with their files, and those of all plug-ins with their entry points.
Python itself, numpy, pyarrow, pandas and what else Labrys needs must be on the executors, or come in an archive of a whole
virtual environment, as `docs/reference/spark.md` describes. In that case the archive has only the modules that the user names.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.console.plugins import MODELS, PLACE_SEPARATOR, SINGULAR, WORKLOADS, is_file_place, plugins, split_place
from results.pipeline.spark.session import OWN_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGES: Final = ("harness", "checker", "results")
RUNNING: Final = (*PACKAGES, "nemesis", "workloads", "clusters", "commands")  # what runs systems in the simulator
LEFT_OUT: Final = frozenset({"tests", "findings", "target", "__pycache__"})  # folders of these packages
KERNEL: Final = "checker._kernel"
FOLDER: Final = "labrys-package"
ARCHIVES: Final = "spark.archives"
PYTHON_PATH: Final = "spark.executorEnv.PYTHONPATH"


def pack(path: Path, contents: Mapping[str, Path]) -> None:
    """Writes an archive of files, given by their names in it."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, file in contents.items():
            archive.add(file, arcname=name, recursive=False)


def _contents() -> Iterator[tuple[str, Path]]:
    """Yields names in the archive, each with its file."""
    for package in PACKAGES:
        yield from _modules(package, _file_of(package).parent)
    for package in sorted(
        {_package_of(plugin.place) for group in (WORKLOADS, MODELS) for plugin in plugins(group).values()}
    ):
        if package not in PACKAGES:
            yield from _of_package(package)
    kernel = _file_of(KERNEL)
    yield f"checker/{kernel.name}", kernel


def _all_contents() -> Iterator[tuple[str, Path]]:
    """Yields what executors need to run systems: names in the archive, each with its file."""
    packages = {_package_of(plugin.place) for group in SINGULAR for plugin in plugins(group).values()}
    for package in dict.fromkeys((*RUNNING, *sorted(packages))):
        spec = importlib.util.find_spec(package)
        for root in map(Path, (spec and spec.submodule_search_locations) or ()):
            yield from _files(package, root)
    for distribution in importlib.metadata.distributions():
        points = {point.group for point in distribution.entry_points}
        for entry in (distribution.files or ()) if points & SINGULAR.keys() else ():
            if entry.parent.name.endswith(".dist-info"):  # so that executors find the plug-ins
                yield str(entry), Path(str(distribution.locate_file(entry)))


def _files(package: str, root: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files of a package, which is in a folder, without what no executor needs."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted({*folders} - LEFT_OUT)
        for file in sorted(Path(folder) / name for name in files):
            yield f"{package}/{file.relative_to(root)}", file


def _modules(package: str, root: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files of a package that are Python."""
    return ((name, file) for name, file in _files(package, root) if file.suffix == ".py")


def _package_of(location: str) -> str:
    return location.partition(PLACE_SEPARATOR)[0].partition(".")[0]


def _of_package(name: str) -> Iterator[tuple[str, Path]]:
    """Yields the files of a package or a module; nothing if it is not found, since its use reports that."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return
    for root in map(Path, spec.submodule_search_locations or ()):
        yield from _modules(name, root)
    if spec.submodule_search_locations is None and spec.origin is not None:
        yield Path(spec.origin).name, Path(spec.origin)


def _of_place(location: str) -> Iterator[tuple[str, Path]]:
    """Yields the files of the loaded module or file that the user names, and of the loaded modules beside it."""
    if is_file_place(location):
        file = Path(split_place(location)[0]).absolute()
        yield file.name, file
        folders, package = {file.parent, Path.cwd()}, None
    else:
        package = _package_of(location)
        folders = {Path.cwd()} if _folder_of(package) == Path.cwd() else set()
    for name in sorted({module.partition(".")[0] for module in list(sys.modules)}):
        if name == package or (_folder_of(name) in folders and name not in PACKAGES):
            yield from _of_package(name)


def _folder_of(name: str) -> Path | None:
    """Returns the folder of a top-level package or module; None if it has no file."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None or name == "__main__":
        return None
    return Path(file).parents[1 if hasattr(module, "__path__") else 0]


def _file_of(module: str) -> Path:
    file = importlib.import_module(module).__file__
    if file is None:
        raise ImportError(f"{module} is in no file")
    return Path(file)


def shipped(
    settings: Mapping[str, str], folder: Path, named: str | None = None, *, runs_systems: bool = False
) -> dict[str, str]:
    """Writes the archive to `folder`, and returns the additional settings that bring it to executors.

    If the user ships a virtual environment (`spark.archives` with its own `spark.pyspark.python`), it contains Labrys. Then the
    archive has only the module that the user names.

    Args:
        settings: The known settings.
        folder: The folder for the archive.
        named: The user's model or workload; a class of a module or of a file is loaded, and the archive
            contains that.
        runs_systems: Whether executors run systems, and not only judge.
    """
    contents: dict[str, Path] = {}
    if not (ARCHIVES in settings and OWN_PYTHON in settings):
        contents.update(_all_contents() if runs_systems else _contents())
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


def reachable(settings: Mapping[str, str], named: str | None) -> dict[str, str]:
    """Returns the additional settings by which workers on this machine find Labrys, and what the user names.

    Python searches Labrys' own folder first, so no folder of the user hides a room.
    """
    known = [settings[PYTHON_PATH]] if PYTHON_PATH in settings else []
    folder = [str(Path(split_place(named)[0]).absolute().parent)] if named is not None and is_file_place(named) else []
    return {PYTHON_PATH: os.pathsep.join([str(_file_of("harness").parents[1]), *known, *folder, str(Path.cwd())])}
