"""Options as one frozen dataclass. Field, type, range, default and help are declared once, and all else follows.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class EtcdOptions:
        quorum_reads: bool = option(True, "Whether reads ask a quorum.")
        heartbeat_ms: int = option(100, "Milliseconds between heartbeats of the leader.", low=1, high=10_000)
        profile: Literal["small", "large"] = option("small", "How much memory a node gets.")

The flags, `labrys.toml`, environment variables, suites, the reproduce line and `test.json` follow: `--heartbeat-ms`,
`heartbeat-ms`, `LABRYS_TEST_HEARTBEAT_MS`. A field has the type `bool`, `int`, `float`, `str`, `Path`, `Literal` of texts, or a
`StrEnum`; a number has two finite ends.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from harness.errors import InputError
from harness.parameters import Number, Whole, existing_file
from harness.plain import name as plain_name
from harness.plain import one_line
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_META: Final = "labrys"
_KINDS: Final[Mapping[Any, str]] = {str: "a text", bool: "true or false", (int, float): "a number"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The declaration of a field besides its type and default.

    Attributes:
        help: One line.
        low: The least number.
        high: The greatest number.
        above: Whether the least number itself is outside.
        metavar: What the help shows for the value.
        judges: Whether a verdict depends on it, so that `labrys check` and `labrys analyze` have it too.
    """

    help: str
    low: float | None
    high: float | None
    above: bool
    metavar: str | None
    judges: bool


def option(
    default: Any,
    help: str,  # noqa: A002 - as click calls it
    *,
    low: float | None = None,
    high: float | None = None,
    above: bool = False,
    metavar: str | None = None,
    judges: bool = False,
) -> Any:
    """Returns the field of an option; see the module and `Declared`."""
    said = Declared(help=help, low=low, high=high, above=above, metavar=metavar, judges=judges)
    return dataclasses.field(default=default, metadata={_META: said})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """The options of a plug-in without options."""


def click_options(options: type, *, judging: bool = False) -> list[click.Option]:
    """Returns the options of a dataclass as click options, in the order of the fields.

    Args:
        options: The dataclass.
        judging: Whether only those that a verdict depends on are wanted.

    Raises:
        TypeError: It is no dataclass of options; a mistake of whoever wrote it.
    """
    if not dataclasses.is_dataclass(options):
        raise TypeError(f"expected a dataclass of options, found {options!r}")
    kinds = typing.get_type_hints(options)
    found = []
    for field in dataclasses.fields(options):
        said = field.metadata.get(_META)
        if said is None:
            raise TypeError(f"{options.__qualname__}.{field.name} has no help; declare it with harness.declare.option")
        if judging and not said.judges:
            continue
        found.append(_click_option(field.name, kinds[field.name], field.default, said, options.__qualname__))
    return found


def _click_option(name: str, kind: Any, default: Any, said: Declared, owner: str) -> click.Option:
    flag = f"--{name.replace('_', '-')}"
    if kind is bool:
        return click.Option([f"{flag}/--no-{flag[2:]}", name], default=default, show_default=True, help=said.help)
    return click.Option(
        [flag, name],
        type=_click_type(kind, said, f"{owner}.{name}"),
        default=str(default) if isinstance(default, enum.Enum) else default,
        show_default=default is not None and default != "",
        metavar=said.metavar,
        help=said.help,
    )


def _click_type(kind: Any, said: Declared, where: str) -> click.ParamType[Any]:
    kinds = [each for each in typing.get_args(kind) if each is not type(None)]
    if type(None) in typing.get_args(kind) and len(kinds) == 1:
        kind = kinds[0]
    if typing.get_origin(kind) is Literal:
        return click.Choice(list(typing.get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        return click.Choice([str(each) for each in kind])
    if kind in {int, float}:
        if said.low is None or said.high is None:
            raise TypeError(f"{where} is a number without two ends; declare `low` and `high`")
        return Whole(int(said.low), int(said.high)) if kind is int else Number(said.low, said.high, above=said.above)
    if kind is Path:
        return existing_file()
    if kind is str:
        return click.STRING
    raise TypeError(f"{where} has the type {kind!r}, which no option can have")


def build(options: type, values: Mapping[str, Any]) -> Any:
    """Returns the dataclass with the values of a command line, or with defaults where they say nothing.

    Args:
        options: The dataclass.
        values: Values by parameter name; others than its fields are not looked at.

    Raises:
        InputError: The dataclass refuses them together.
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
    """Returns the options of a file that a verdict depends on, checked against their types and ranges.

    The file may come from anyone. Other options change no verdict, and are ignored.

    Args:
        options: The dataclass.
        values: What the file says, by the names of the fields.
        source: The file, for errors.

    Raises:
        InputError: A value is not of its option's type, or outside of its range.
    """
    found = {}
    for each in click_options(options, judging=True):
        name = str(each.name)
        if name not in values or (values[name] is None and each.default is None):
            continue
        found[name] = _held(each, values[name], f"{source}: the option {name.replace('_', '-')}")
    return found


def assigned(options: type, settings: Sequence[str], *, flag: str, owner: str) -> dict[str, Any]:
    """Returns the values of settings `NAME=VALUE` that a person gives for options that a verdict depends on.

    Args:
        options: The dataclass.
        settings: What the person gives; of two settings of one name the later one holds.
        flag: The option by which they are given, for errors.
        owner: Who has the options, for errors, e.g. `the workload set`.

    Raises:
        InputError: A setting is not of this form, names no such option, or has a value that the option does not take.
    """
    known = {str(each.name).replace("_", "-"): each for each in click_options(options, judging=True)}
    found = {}
    for setting in settings:
        said, equals, text = setting.partition("=")
        if not said or not equals:
            raise InputError(f"{flag}: expected NAME=VALUE, found {plain_name(setting)}")
        each = known.get(said.replace("_", "-"))
        if each is None:
            told = did_you_mean(said, known) if known else "It has no option that a verdict depends on."
            raise InputError(f"{flag}: {owner} has no option {plain_name(said)} that a verdict depends on. {told}")
        found[str(each.name)] = _of_type(each, text, f"{flag} {plain_name(said)}")
    return found


def _held(option_of: click.Option, value: Any, where: str) -> Any:
    """Returns a value of a document as its option takes it; a text is no number there, and a number is no text."""
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
