"""Options as one frozen dataclass: field, type, range, default and help are said once, and all else is derived from it.

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

if TYPE_CHECKING:
    from collections.abc import Mapping

_META: Final = "labrys"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What a field says beside its type and default.

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
    """The options of what has none."""


def click_options(options: type, *, judging: bool = False) -> list[click.Option]:
    """Returns the options of a dataclass as click has them, in the order of the fields.

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
