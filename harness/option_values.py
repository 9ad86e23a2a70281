"""Values of declared options: of a command line and of files, and what hunts, shrinks and repairs do with them."""

from __future__ import annotations

import dataclasses
import enum
import typing
from typing import TYPE_CHECKING, Any, Final

import click

from harness.console.plain import name as plain_name
from harness.console.plain import one_line
from harness.console.suggest import did_you_mean
from harness.declare import META, click_options, flag_of
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.declare import Needs

_KINDS: Final[Mapping[Any, str]] = {str: "a text", bool: "true or false", (int, float): "a number"}


def hunted(options: type) -> dict[str, Sequence[Any]]:
    """Returns the values that the runs of a hunt draw from, by the names of the fields that have such values."""
    declared = {field.name: field.metadata.get(META) for field in dataclasses.fields(options)}
    return {
        name: declaration.hunted
        for name, declaration in declared.items()
        if declaration is not None and declaration.hunted
    }


def shrinking(options: type) -> dict[str, float]:
    """Returns the numbers that `labrys shrink` makes smaller, each with the value of the smallest run."""
    declared = {field.name: field.metadata.get(META) for field in dataclasses.fields(options)}
    return {
        name: declaration.shrinks_to
        for name, declaration in declared.items()
        if declaration is not None and declaration.shrinks_to is not None
    }


def planted(options: type, values: Mapping[str, Any]) -> dict[str, Needs]:
    """Returns what the planted bugs among the values need, by the names of the fields that plant them.

    Args:
        options: The dataclass.
        values: The values of a run by parameter name.
    """
    declared = {field.name: field.metadata.get(META) for field in dataclasses.fields(options)}
    return {
        name: declaration.needs[values[name]]
        for name, declaration in declared.items()
        if declaration is not None and values.get(name) in declaration.needs
    }


def released(options: type) -> dict[str, Sequence[str]]:
    """Returns the releases of a program that runs can choose from, by the name of the field that chooses; usually one field."""
    kinds = typing.get_type_hints(options)
    declared = {field.name: field.metadata.get(META) for field in dataclasses.fields(options)}
    return {
        name: tuple(str(release) for release in typing.get_args(kinds[name]))
        for name, declaration in declared.items()
        if declaration is not None and declaration.releases
    }


def repairs(options: type, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the known defects of the program that a run has and that other values repair, e.g. `--mend 4`.

    Args:
        options: The dataclass.
        values: The values of the run by parameter name.

    Returns:
        For each defect, the changed values by parameter name. The repair of a planted bug is the default of its option.
    """
    by_text: dict[str, dict[str, Any]] = {}
    for field in dataclasses.fields(options):
        declared = field.metadata.get(META)
        if declared is None or field.name not in values:
            continue
        value, flag = values[field.name], flag_of(field.name, declared)
        if value in declared.needs and declared.needs[value].plants:
            by_text[f"{flag} {value}"] = {field.name: field.default}
        if declared.repairs is not None:
            by_text |= {f"{flag} {name}": {field.name: other} for name, other in declared.repairs(value).items()}
    return by_text


def patch_of(options: Any, defect: str) -> str:
    """Returns the change of the program's sources that repairs a known defect, as text; empty if there is none.

    Args:
        options: The options of the run, an instance of the dataclass.
        defect: The defect, as `repairs` names it.
    """
    flag, _, name = defect.partition(" ")
    for field in dataclasses.fields(options):
        declared = field.metadata.get(META)
        if declared is not None and declared.patch is not None and flag == flag_of(field.name, declared):
            text: str = declared.patch(options, name)
            return text
    return ""


def build(options: type, values: Mapping[str, Any]) -> Any:
    """Returns an object of the dataclass with the values of a command line, and defaults for missing ones.

    Args:
        options: The dataclass.
        values: Values by parameter name; values that are not its fields are ignored.

    Raises:
        InputError: The dataclass refuses the values together.
    """
    kinds = typing.get_type_hints(options)
    given = {}
    for field in dataclasses.fields(options):
        if field.name in values:
            kind, value = kinds[field.name], values[field.name]
            is_enum = isinstance(kind, type) and issubclass(kind, enum.Enum)
            given[field.name] = kind(value) if is_enum else value
    try:
        return options(**given)
    except ValueError as error:
        raise InputError(f"{error}") from error


def recorded(options: type, values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Returns the options of a file that a verdict depends on, and checks their types and ranges.

    The file may come from anyone. Other options are ignored, because they change no verdict.

    Args:
        options: The dataclass.
        values: The values in the file, by field name.
        source: The file, for errors.

    Raises:
        InputError: A value has another type than its option, or is out of range.
    """
    read = {}
    for parameter in click_options(options, judging=True):
        name = str(parameter.name)
        if name not in values or (values[name] is None and parameter.default is None):
            continue
        read[name] = _from_document(parameter, values[name], f"{source}: the option {name.replace('_', '-')}")
    return read


def assigned(options: type, settings: Sequence[str], *, flag: str, owner: str) -> dict[str, Any]:
    """Returns the values of settings `NAME=VALUE` on the command line, for options that a verdict depends on.

    Args:
        options: The dataclass.
        settings: The settings; of two with the same name, the later one counts.
        flag: The flag of the settings, for errors.
        owner: The owner of the options, for errors, e.g. `the workload set`.

    Raises:
        InputError: A setting has another form, names no such option, or has a value that does not fit.
    """
    known = {str(parameter.name).replace("_", "-"): parameter for parameter in click_options(options, judging=True)}
    values = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not key or not equals:
            raise InputError(f"{flag}: expected NAME=VALUE, found {plain_name(setting)}")
        parameter = known.get(key.replace("_", "-"))
        if parameter is None:
            hint = did_you_mean(key, known) if known else "It has no option that a verdict depends on."
            raise InputError(f"{flag}: {owner} has no option {plain_name(key)} that a verdict depends on. {hint}")
        values[str(parameter.name)] = _of_type(parameter, text, f"{flag} {plain_name(key)}")
    return values


def _from_document(option_of: click.Option, value: Any, where: str) -> Any:
    """Returns a value of a document, converted for its option. A text does not count as a number, nor a number as a text."""
    if isinstance(option_of.type, click.Path):
        raise InputError(f"{where} is a path, and labrys accepts paths only on the command line")
    kind: type | tuple[type, ...] = str
    if option_of.is_flag:
        kind = bool
    elif isinstance(option_of.type, click.IntRange | click.FloatRange):
        kind = (int, float)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{where}: expected {_KINDS[kind]}, found {plain_name(repr(value))}")
    return _of_type(option_of, value, where)


def _of_type(option_of: click.Option, value: Any, where: str) -> Any:
    kind = click.BOOL if option_of.is_flag else option_of.type
    try:
        return kind.convert(value, option_of, None)
    except click.BadParameter as error:
        raise InputError(f"{where}: {one_line(error.message)}") from error
