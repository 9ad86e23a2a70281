"""The sources of option values, and the command line that gives the same values again.

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

from harness.console.config import as_defaults, load_config, refuse_unread, without_effect
from harness.console.plain import name
from harness.console.suggest import did_you_mean
from harness.console.terminal import echo
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from harness.op import Value

ENVIRONMENT_PREFIX = "LABRYS"  # of all environment variables of Labrys
MAX_PATH = 1000
MAX_EXACT = 2**53  # whole numbers above it are not all floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The source of a value that is not a built-in default.

    Attributes:
        words: The value with its source, e.g. `--time-limit 60` or `time-limit = 60 of labrys.toml`.
        typed: Whether it is on the command line.
    """

    words: str
    typed: bool


class Group(click.Group):
    """A group of commands that suggests the nearest command for an unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the arguments name.

        Raises:
            UsageError: No command has this name.
        """
        name, known = args[0], self.list_commands(ctx)
        # A word that does not begin as a name is an option, and click refuses it.
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
        ctx: Its context, if options may depend on others; None for the command's own options only.
    """
    every = command.params if ctx is None else command.get_params(ctx)
    return [option for option in every if isinstance(option, click.Option) and "--help" not in option.opts]


def origins(ctx: click.Context) -> dict[str, Origin]:
    """Returns the sources of values by parameter name, without options that have their built-in default."""
    known = {}
    for option in options_of(ctx.command, ctx):
        key = str(option.name)
        value = as_written(ctx.params[key])
        match ctx.get_parameter_source(key):
            case ParameterSource.COMMANDLINE:
                words = " ".join(_words(option, ctx.params[key]))
                known[key] = Origin(words=words, typed=True)
            case ParameterSource.ENVIRONMENT:
                known[key] = Origin(words=f"{option.envvar}={os.environ.get(str(option.envvar))}", typed=False)
            case ParameterSource.DEFAULT_MAP:
                words = f"{long_name(option)} = {value} of {ctx.find_root().params.get('config')}"
                known[key] = Origin(words=words, typed=False)
            case _:
                pass
    return known


def source_of(error: click.UsageError) -> str:
    """Returns a sentence with the source of a refused value; empty if the command line has it."""
    ctx, option = error.ctx, getattr(error, "param", None)
    if ctx is None or not isinstance(option, click.Option):
        return ""
    match ctx.get_parameter_source(str(option.name)):
        case ParameterSource.ENVIRONMENT:
            where = str(option.envvar)
        case ParameterSource.DEFAULT_MAP:
            where = str(ctx.find_root().params.get("config"))
        case _:
            return ""
    return f"{name(where, most=MAX_PATH)} has this value."


def from_file(ctx: click.Context) -> dict[str, Value] | None:
    """Returns the options that `labrys.toml` sets, as `file` and `options` by long name; None if it sets none."""
    settings: dict[str, Value] = {
        long_name(option): _as_json(ctx.params[str(option.name)])
        for option in options_of(ctx.command, ctx)
        if ctx.get_parameter_source(str(option.name)) is ParameterSource.DEFAULT_MAP
    }
    path: Path | None = ctx.find_root().params.get("config")
    return {"file": str(path.absolute()), "options": settings} if path is not None and settings else None


def _as_json(value: Any) -> Value:
    if isinstance(value, list | tuple):
        return [_as_json(member) for member in value]
    return value if isinstance(value, bool | int | float | str) else str(value)


def table_of(root: click.Context, source: str) -> tuple[Path | None, Mapping[str, Any]]:
    """Returns `labrys.toml` and its table for a command; None and an empty table if there is no file.

    Args:
        root: The context of the group of all commands.
        source: The name of the table.

    Raises:
        InputError: The file is not valid, or a variable looks like a default and has no effect.
    """
    refuse_unread(os.environ, ENVIRONMENT_PREFIX)
    path: Path | None = root.params.get("config")
    if path is None or not isinstance(root.command, click.Group):
        return None, {}
    named = root.get_parameter_source("config") in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    return path, load_config(path, root.command.list_commands(root), named=named).get(source, {})


def give_defaults(
    options: Iterable[click.Option], command: str, path: Path | None, table: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Gives options their environment variables, and returns their defaults from `labrys.toml` by parameter name.

    Args:
        options: The options of a command.
        command: The name of the command whose table and variables they have.
        path: `labrys.toml`; None if there is no file, and then there are no defaults.
        table: The table of the command.

    Raises:
        InputError: A key of the table is no option, or a value does not fit its option.
    """
    known = {}
    for option in options:
        option.envvar = variable(f"{ENVIRONMENT_PREFIX}_{command}", option)
        known[long_name(option)] = (str(option.name), option.multiple)
    return None if path is None else as_defaults(path, command, table, known)


def warn_unread(
    command: str, options: Iterable[click.Option], *, elsewhere: Callable[[str], bool] = lambda _: False
) -> None:
    """Prints a line for each environment variable that looks like an option of a command, and is none.

    Args:
        command: The name of the command.
        options: Its options.
        elsewhere: Returns whether a long name is an option of another system or workload; such a variable may stay.
    """
    start = f"{ENVIRONMENT_PREFIX}_{command}_".upper()
    for variable_name, suggestion in without_effect(
        os.environ, start, {variable(f"{ENVIRONMENT_PREFIX}_{command}", o) for o in options}
    ).items():
        if not elsewhere(variable_name.removeprefix(start).lower().replace("_", "-")):
            hint = suggestion or f"`labrys {command} --help` lists the options."
            echo(f"{name(variable_name)} has no effect: `labrys {command}` has no such option. {hint}", err=True)


class DefaultsCommand(click.Command):
    """A command that first prints the options that `labrys.toml` sets.

    Attributes:
        finds_defaults: Whether the command finds its defaults itself, because its options depend on others.
    """

    finds_defaults: ClassVar[bool] = False

    def invoke(self, ctx: click.Context) -> Any:
        """Carries out the command."""
        tell_defaults(from_file(ctx))
        return super().invoke(ctx)


def tell_defaults(defaults: Mapping[str, Value] | None) -> None:
    """Prints the options that `labrys.toml` sets, as `from_file` returns them."""
    if defaults is not None:
        settings = ", ".join(f"{key} = {name(as_written(value))}" for key, value in defaults["options"].items())
        echo(f"defaults of {name(defaults['file'], most=MAX_PATH)}: {settings}", err=True)


def spelled_out(options: Iterable[click.Option], values: Mapping[str, Any]) -> list[str]:
    """Returns the command-line words for known values of options, without None."""
    return [
        word for option in options if values.get(str(option.name)) is not None
        for word in _words(option, values[str(option.name)])
    ]  # fmt: skip


def recorded(
    options: Iterable[click.Option], values: Mapping[str, Value], *, places: Collection[str], source: str
) -> tuple[dict[str, Any], list[str]]:
    """Reads the options of a command from a record, which may come from anyone.

    Each value must have the type and the range of its flag. Places, such as files and names of clusters, are never taken from
    the record. A path in it is an error, unless it is the built-in default.

    Args:
        options: The command's options.
        values: The record: values by parameter name.
        places: The parameters that are not taken.
        source: The name of the record in errors.

    Returns:
        The value of each option by parameter name, and the flags that the record lacks. These have their built-in default.

    Raises:
        InputError: The record has an unknown option, a value that does not fit its option, or a path.
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
        if isinstance(option.type, click.Path) and values[key] != option.default:
            raise InputError(
                f"{source}: {option.opts[0]} among the options names the path {name(repr(values[key]))}. labrys opens no path "
                f"that a run names; carry out its plan.json by `labrys test --plan`, and give {option.opts[0]} there"
            )
        texts = values[key] if option.multiple and isinstance(values[key], list) else [values[key]]
        if isinstance(values[key], list) is not option.multiple or not all(_fits(option, value) for value in texts):
            raise InputError(
                f"{source}: expected a value of {option.opts[0]} among the options, not {name(repr(values[key]))}"
            )
        try:
            read = tuple(option.type.convert(value, option, None) for value in texts)
            taken[key] = read if option.multiple else read[0]
        except click.BadParameter as error:
            raise InputError(f"{source}: {option.opts[0]} among the options: {error.message}") from error
    return taken, missing


def _fits(option: click.Option, value: Value) -> bool:
    """Returns whether the JSON type of a value is that of an option; click would convert almost any value."""
    if option.is_flag or isinstance(value, bool):
        return option.is_flag and isinstance(value, bool)
    if isinstance(option.type, click.types.IntParamType):
        return isinstance(value, int)
    if isinstance(option.type, click.types.FloatParamType):
        return isinstance(value, int | float) and abs(value) <= sys.float_info.max  # neither NaN nor infinite
    return isinstance(value, str)


def as_written(value: Any) -> str:
    """Returns a value as it is written on the command line, with every digit of a number."""
    if isinstance(value, list | tuple):
        return ", ".join(map(as_written, value))
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT:
        return str(int(value))
    return str(value)


def _words(option: click.Option, value: Any) -> list[str]:
    if option.is_flag:
        return (option.opts if value else option.secondary_opts)[:1]
    if option.multiple:
        return [word for member in value for word in (option.opts[0], as_written(member))]
    return [option.opts[0], as_written(value)]
