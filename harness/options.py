"""Where the value of an option comes from, and the command line that gives the same values again.

A flag beats the environment, the environment beats `labrys.toml`, and that beats the built-in default. In all of them an
option has one name, that of its flag: `--time-limit`, `LABRYS_TEST_TIME_LIMIT`, and `time-limit` in the table `[test]`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import click
from click.core import ParameterSource

from harness.config import load_config, refuse_unread
from harness.errors import InputError
from harness.plain import name
from harness.suggest import did_you_mean
from harness.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from harness.op import Value

MAX_PATH = 1000
MOST_EXACT = 2**53  # whole numbers above it are not all floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value comes from that is not a built-in default.

    Attributes:
        words: The value with its source, e.g. `--time-limit 60` or `time-limit = 60 of labrys.toml`.
        typed: Whether it stands on the command line.
    """

    words: str
    typed: bool


class Group(click.Group):
    """A group of commands that suggests the nearest one for a name that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the arguments name.

        Raises:
            UsageError: There is none of this name.
        """
        name, known = args[0], self.list_commands(ctx)
        # What does not begin as a name is an option, which click refuses.
        if name not in known and name[:1].isalnum() and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}. {did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)


def long_name(option: click.Option) -> str:
    """Returns the name of an option: its flag without the dashes in front."""
    return option.opts[0].lstrip("-")


def variable(prefix: str, option: click.Option) -> str:
    """Returns the environment variable of an option, e.g. `LABRYS_TEST_TIME_LIMIT`."""
    return f"{prefix}_{long_name(option)}".upper().replace("-", "_")


def options_of(command: click.Command, ctx: click.Context | None = None) -> list[click.Option]:
    """Returns the options of a command, without its arguments.

    Args:
        command: The command.
        ctx: Its context, where options may depend on others; None: the command's own alone.
    """
    every = command.params if ctx is None else command.get_params(ctx)
    return [option for option in every if isinstance(option, click.Option) and "--help" not in option.opts]


def built_in(ctx: click.Context) -> dict[str, Any]:
    """Returns the built-in defaults of a command's options by parameter name."""
    return {str(option.name): option.default for option in options_of(ctx.command, ctx)}


def origins(ctx: click.Context) -> dict[str, Origin]:
    """Returns where values come from, by parameter name; options that have their built-in default are not in it."""
    found = {}
    for option in options_of(ctx.command, ctx):
        key = str(option.name)
        value = as_written(ctx.params[key])
        match ctx.get_parameter_source(key):
            case ParameterSource.COMMANDLINE:
                words = " ".join(_words(option, ctx.params[key]))
                found[key] = Origin(words=words, typed=True)
            case ParameterSource.ENVIRONMENT:
                found[key] = Origin(words=f"{option.envvar}={os.environ.get(str(option.envvar))}", typed=False)
            case ParameterSource.DEFAULT_MAP:
                words = f"{long_name(option)} = {value} of {ctx.find_root().params.get('config')}"
                found[key] = Origin(words=words, typed=False)
            case _:
                pass
    return found


def from_file(ctx: click.Context) -> dict[str, Value] | None:
    """Returns the options that `labrys.toml` sets, for results: `file`, and `options` by long name; None if there are none."""
    decided: dict[str, Value] = {
        long_name(option): _as_json(ctx.params[str(option.name)])
        for option in options_of(ctx.command, ctx)
        if ctx.get_parameter_source(str(option.name)) is ParameterSource.DEFAULT_MAP
    }
    path: Path | None = ctx.find_root().params.get("config")
    return {"file": str(path.absolute()), "options": decided} if path is not None and decided else None


def _as_json(value: Any) -> Value:
    if isinstance(value, list | tuple):
        return [_as_json(member) for member in value]
    return value if isinstance(value, bool | int | float | str) else str(value)


def table_of(root: click.Context, source: str, prefix: str) -> tuple[Path | None, Mapping[str, Any]]:
    """Returns the file of defaults, and the table that it has for a command; no file and an empty table where there is none.

    Args:
        root: The context of the group of all commands.
        source: The name of the table.
        prefix: What the names of all our environment variables begin with.

    Raises:
        InputError: The file cannot be used, or a variable looks like a default and is not read.
    """
    refuse_unread(os.environ, prefix)
    path: Path | None = root.params.get("config")
    if path is None or not isinstance(root.command, click.Group):
        return None, {}
    named = root.get_parameter_source("config") in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    return path, load_config(path, root.command.list_commands(root), named=named).get(source, {})


class ToldCommand(click.Command):
    """A command that first prints the options that `labrys.toml` sets.

    Attributes:
        finds_defaults: Whether the command finds its defaults itself, since its options depend on others.
    """

    finds_defaults: ClassVar[bool] = False

    def invoke(self, ctx: click.Context) -> Any:
        """Carries out the command."""
        decided = from_file(ctx)
        if decided is not None:
            told = ", ".join(f"{key} = {name(as_written(value))}" for key, value in decided["options"].items())
            echo(f"defaults of {name(decided['file'], most=MAX_PATH)}: {told}", err=True)
        return super().invoke(ctx)


def command_line(
    ctx: click.Context, values: Mapping[str, Any], *, without: Collection[str], always: Collection[str] = ()
) -> list[str]:
    """Returns the command-line words that give a command the same values again.

    An option is named if its value differs from the built-in default, or if the environment or `labrys.toml` gives it any
    value. So the words mean the same with and without them.

    Args:
        ctx: The command's context.
        values: The values by parameter name.
        without: Parameters that are left out.
        always: Parameters that are named whatever their value is, since something else than the built-in default would decide.
    """
    words: list[str] = []
    for option in options_of(ctx.command, ctx):
        key = str(option.name)
        if key in without or values[key] is None:
            continue
        elsewhere = option.resolve_envvar_value(ctx) is not None or key in (ctx.default_map or {})
        if elsewhere or key in always or values[key] != option.default:
            words += _words(option, values[key])
    return words


def spelled_out(options: Iterable[click.Option], values: Mapping[str, Any]) -> list[str]:
    """Returns the words that give options the values that are known of them; None and unknown values are left out."""
    return [
        word for option in options if values.get(str(option.name)) is not None
        for word in _words(option, values[str(option.name)])
    ]  # fmt: skip


def recorded(
    options: Iterable[click.Option], values: Mapping[str, Value], *, places: Collection[str], source: str
) -> tuple[dict[str, Any], list[str]]:
    """Reads the options of a command from a record, which may come from anyone.

    Each value must have the type and the range of its flag. Places, such as files and names of clusters, are never
    taken from the record.

    Args:
        options: The command's options.
        values: What the record says, by parameter name.
        places: The parameters that are not taken.
        source: What the record is called in errors.

    Returns:
        The value of each option by parameter name, and the flags that the record does not know; those have their built-in
        default.

    Raises:
        InputError: The record names an option that the command does not have, or a value is none of its option's.
    """
    own = {str(option.name): option for option in options}
    for key in values:
        if key not in own:
            raise InputError(
                f"{source}: `options` has {name(key)!r}, which is no option of `labrys test`. {did_you_mean(key, own)} "
                "A run with unknown options cannot be replayed; use the version of labrys that made it"
            )
    taken: dict[str, Any] = {}
    missing = []
    for key, option in own.items():
        if key in places or (key in values and values[key] is None and option.default is None):
            continue
        if key not in values:
            missing.append(option.opts[0])
            taken[key] = option.default
            continue
        if not _fits(option, values[key]):
            raise InputError(
                f"{source}: expected a value of {option.opts[0]} among the options, not {name(repr(values[key]))}"
            )
        try:
            taken[key] = option.type.convert(values[key], option, None)
        except click.BadParameter as error:
            raise InputError(f"{source}: {option.opts[0]} among the options: {error.message}") from error
    return taken, missing


def _fits(option: click.Option, value: Value) -> bool:
    """Says whether JSON's type of a value is that of an option; click would make a text or a number of anything."""
    if option.is_flag or isinstance(value, bool):
        return option.is_flag and isinstance(value, bool)
    if isinstance(option.type, click.types.IntParamType):
        return isinstance(value, int)
    if isinstance(option.type, click.types.FloatParamType):
        return isinstance(value, int | float) and abs(value) <= sys.float_info.max  # nor is it no number
    return isinstance(value, str)


def as_written(value: Any) -> str:
    """Returns a value as it is written on the command line, with every digit of a number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < MOST_EXACT:
        return str(int(value))
    return str(value)


def _words(option: click.Option, value: Any) -> list[str]:
    if option.is_flag:
        return (option.opts if value else option.secondary_opts)[:1]
    return [option.opts[0], as_written(value)]
