"""Finds systems, workloads, kinds of faults and models, those of Labrys and those of other packages, in the same way.

A package lists its plug-ins in its metadata, as entry points of the groups below; pyproject.toml of Labrys is the example. So
names are known without an import, and a plug-in is imported when a command selects it. A plug-in that cannot be imported
affects no other: the error names the plug-in and its package.

`module:Name` is an object in an importable module, without any packaging, and `path/to/file.py:Name` one in a file. Only the
user may give such a place. A name from a file is only looked up among the entry points.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.console import own
from harness.console.documents import shown
from harness.console.plain import name as plain_name
from harness.console.suggest import did_you_mean
from harness.errors import InputError, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

T = TypeVar("T")

SYSTEMS = "labrys.systems"
WORKLOADS = "labrys.workloads"
FAULTS = "labrys.faults"
TRIGGERS = "labrys.triggers"
MODELS = "labrys.models"
SINGULAR = {SYSTEMS: "system", WORKLOADS: "workload", FAULTS: "kind of fault", TRIGGERS: "trigger", MODELS: "model"}
PLURAL = {FAULTS: "kinds of faults", TRIGGERS: "triggers"}  # groups whose entry points hold several objects
OWN = "labrys"
PLACE_SEPARATOR = ":"
IN_MODULE, IN_FILE = "MODULE:CLASS", "FILE.py:CLASS"  # the forms of a place, for messages
METAVAR = f"NAME|{IN_MODULE}|{IN_FILE}"
MAX_ERROR = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plug-in that is not imported yet.

    Attributes:
        group: One of the groups above.
        name: Its name on the command line.
        place: `module:attribute` or `path/to/file.py:attribute`.
        package: The package of the entry point; None if the user gave the place.
        rivals: Other packages with a plug-in of the same name; with a rival, it cannot be selected.
    """

    group: str
    name: str
    place: str
    package: str | None
    rivals: tuple[str, ...] = ()

    def load(self) -> Any:
        """Imports the plug-in, and returns its object.

        Raises:
            InputError: It cannot be imported, or has rivals; the message has the packages and the error.
        """
        if self.rivals:
            raise InputError(
                f"several packages have a {SINGULAR[self.group]} named {plain_name(self.name)}: "
                f"{', '.join(plain_name(str(package)) for package in (self.package, *self.rivals))}; uninstall all but one"
            )
        where, attribute = split_place(self.place)
        if is_file_place(self.place) and not Path(where).is_file():
            raise InputError(
                f"the {SINGULAR[self.group]} {plain_name(self.name)} cannot be loaded: expected a file of Python, relative to "
                f"the working folder {plain_name(str(Path.cwd()))}, and found none"
            )
        try:
            member: Any = _of_file(where) if is_file_place(self.place) else importlib.import_module(where)
            for part in attribute.split("."):
                member = getattr(member, part)
        except (Exception, SystemExit) as error:  # a module that calls `sys.exit` must not end Labrys
            whose = f" of the package {plain_name(self.package)}" if self.package else ""
            raise InputError(
                f"the {SINGULAR[self.group]} {plain_name(self.name)}{whose} cannot be loaded from {plain_name(self.place)}: "
                f"{type(error).__name__}: {plain_name(own.readable(sentence(error)), most=MAX_ERROR)}{_place(error)}"
                f"{self._remedy(error)}"
            ) from error
        return member

    def _remedy(self, error: BaseException) -> str:
        """Returns what to do if a plug-in cannot be loaded; empty if only its package can say it."""
        where, attribute = split_place(self.place)
        hidden = None if self.package is not None or is_file_place(self.place) else _hidden(where)
        if self.package is not None:
            return ""
        if is_file_place(self.place):
            return _remedy_of_file(Path(where), error)
        if hidden is not None:
            return (
                f"; an installed package has a module {plain_name(where.partition('.')[0])} too, and Python takes that one; "
                f"name the file: {plain_name(str(hidden))}:{plain_name(attribute)}"
            )
        remedy = f"correct the module, `python -c 'import {plain_name(where)}'` shows the error in full"
        if isinstance(error, ModuleNotFoundError) and error.name == where.partition(".")[0]:
            here = plain_name(str(Path.cwd()))
            remedy = f"expected {plain_name(error.name)}.py in the working folder {here}, or an installed module"
        elif not attribute or isinstance(error, AttributeError):
            remedy = f"expected {IN_MODULE}, with a class that the module {plain_name(where)} has"
        return f"; {remedy}"


def is_file_place(location: str) -> bool:
    """Returns whether a place has the form `path/to/file.py:attribute`."""
    return split_place(location)[0].endswith(own.SUFFIX)


def split_place(location: str) -> tuple[str, str]:
    """Returns the module or the path of a place, and the attribute. A path may have colons, and an attribute has none."""
    where, _, attribute = location.rpartition(PLACE_SEPARATOR)
    return where, attribute


def form(location: str) -> str:
    """Returns the form of a place, for messages."""
    return IN_FILE if is_file_place(location) else IN_MODULE


def _of_file(path: str) -> ModuleType:
    own.search(Path.cwd())
    return own.module_of(Path(path).absolute())


def _hidden(module: str) -> Path | None:
    """Returns the file of a module in the working folder, if Python finds another module of this name first."""
    file = Path(f"{module.replace('.', '/')}{own.SUFFIX}")
    if not file.is_file():
        return None
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    is_found = spec is not None and spec.origin is not None and Path(spec.origin).resolve() == file.resolve()
    return None if is_found else file


def _remedy_of_file(file: Path, error: BaseException) -> str:
    """Returns what to do if a file of the user cannot be loaded, as a clause."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(f"{own.__name__}."):
        helper = str(error.name).rpartition(".")[2]
        return f"; a file has no package, so import its neighbour by `import {plain_name(helper)}`"
    if isinstance(error, ImportError):
        return (
            f"; the file can import installed modules, and modules of the folder {plain_name(str(file.parent))} and of the "
            "working folder, if no installed module has their names"
        )
    if isinstance(error, AttributeError):
        return f"; expected {IN_FILE}, with a class that the file has"
    return "; correct the file"


def _place(error: BaseException) -> str:
    """Returns the last line of a module that an error comes from, e.g. ` (latch.py:3)`; empty if no module began to run."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame
        for frame in frames
        if frame.filename not in {__file__, importlib.__file__, own.__file__} and not frame.filename.startswith("<")
    ]
    return f" ({plain_name(theirs[-1].filename)}:{theirs[-1].lineno})" if theirs else ""


@functools.cache
def plugins(group: str) -> dict[str, Plugin]:
    """Returns the plug-ins of a group in all installed packages and those of `add`, by name; imports none.

    Raises:
        InputError: There is none, because Labrys is not installed.
    """
    from importlib import metadata  # noqa: PLC0415 - slow to import, and most checks name no plug-in

    by_name: dict[str, Plugin] = {}
    for point in metadata.entry_points(group=group):
        package = point.dist.name if point.dist is not None else "(unknown)"
        known = by_name.get(point.name)
        if known is None:
            by_name[point.name] = Plugin(group=group, name=point.name, place=point.value, package=package)
        elif (known.package, known.place) != (package, point.value):
            by_name[point.name] = replace(known, rivals=(*known.rivals, package))
    if not by_name:
        raise InputError(
            f"no installed package has a {SINGULAR[group]}, not even labrys itself; "
            "install labrys again, e.g. with `make setup` in a clone (docs/guide/install.md)"
        )
    return dict(sorted(by_name.items()))


def add(group: str, location: str, wanted: type[T], *, page: str) -> None:
    """Adds what the user names by a place to a group, for the rest of the process, as if a package had it.

    Args:
        group: A group whose entry points hold several objects.
        location: The place.
        wanted: The type of the objects.
        page: The page of the documentation about them, for messages.

    Raises:
        InputError: It cannot be loaded, or has something else.
    """
    point = find(group, location, by_place=True)
    _several(point, wanted, page)
    plugins(group)[point.name] = point


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Generic[T]):
    """The objects of a group whose entry points hold one or several each.

    Attributes:
        found: Each object with its package, those of Labrys first.
        broken: For each entry point that cannot be loaded, a sentence about it.
    """

    found: tuple[tuple[str, T], ...]
    broken: Mapping[str, str]


def collect(group: str, wanted: type[T], *, page: str) -> Collection[T]:
    """Loads the objects of a group in all installed packages. It records an entry point that cannot be loaded, and continues.

    The object of an entry point is a `wanted`, several of them, or a function that returns one or several.

    Args:
        group: The group.
        wanted: The type of the objects.
        page: The page of the documentation about them, for messages.

    Raises:
        InputError: No package has such objects, because Labrys is not installed.
    """
    members: list[tuple[str, T]] = []
    broken: dict[str, str] = {}
    for point in sorted(plugins(group).values(), key=lambda point: (point.package != OWN, point.name)):
        try:
            members += [(point.package or point.name, member) for member in _several(point, wanted, page)]
        except InputError as error:
            broken[point.name] = str(error)
    return Collection(found=tuple(members), broken=broken)


def _several(point: Plugin, wanted: type[T], page: str) -> tuple[T, ...]:
    """Returns the objects of an entry point.

    Raises:
        InputError: It cannot be loaded, or has something else. The message names the package and the place.
    """
    members = point.load()
    whose = f" of the package {plain_name(point.package)}" if point.package else ""
    where = f"the {PLURAL[point.group]} {plain_name(point.name)}{whose}"
    try:
        members = members() if callable(members) else members
        members = (members,) if isinstance(members, wanted) else tuple(members)
    except Exception as error:
        raise InputError(
            f"{where} cannot be loaded from {plain_name(point.place)}: {type(error).__name__}: {plain_name(str(error))}"
        ) from error
    for member in members:
        if not isinstance(member, wanted):
            raise InputError(
                f"{where} hold something that is no {wanted.__module__}.{wanted.__name__}: {shown(repr(member))}; see {page}"
            )
    return members


def find(group: str, name: str, *, by_place: bool = False) -> Plugin:
    """Returns a plug-in by its name; imports nothing.

    Args:
        group: One of the groups above.
        name: Its name.
        by_place: Whether the user gives the name, so that it may be a place.

    Raises:
        InputError: There is none of this name; the message has a suggestion.
    """
    known = plugins(group)
    if name in known:
        return known[name]
    if PLACE_SEPARATOR in name:
        if not by_place:
            raise InputError(
                f"the {SINGULAR[group]} {plain_name(name)} is a {form(name)}, which labrys never takes from a file; "
                "name it on the command line"
            )
        if not is_file_place(name):
            own.search(Path.cwd())
        return Plugin(group=group, name=name, place=name, package=None)
    if name.endswith(own.SUFFIX):
        raise InputError(f"expected {IN_FILE}, with a class that the file has, and found {plain_name(name)}")
    if group == MODELS and name in plugins(WORKLOADS):  # each command with models has workloads too
        raise InputError(f"unknown model {name}. There is a workload of this name: give --workload {name}.")
    raise InputError(f"unknown {SINGULAR[group]} {plain_name(name)}. {did_you_mean(name, known)}")


def load(group: str, name: str, *, by_place: bool = False) -> Any:
    """Finds and imports a plug-in; see `find` and `Plugin.load`."""
    return find(group, name, by_place=by_place).load()
