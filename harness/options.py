"""Where the value of an option comes from, and the command line that gives the same values again.

A flag beats the environment, the environment beats `labrys.toml`, and that beats the built-in default. In all of them an
option has one name, that of its flag: `--time-limit`, `LABRYS_TEST_TIME_LIMIT`, and `time-limit` in the table `[test]`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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


def options_of(command: click.Command) -> list[click.Option]:
    """Returns the options of a command, without its arguments."""
    return [option for option in command.params if isinstance(option, click.Option)]


def built_in(command: click.Command) -> dict[str, Any]:
    """Returns the built-in defaults of a command's options by parameter name."""
    return {str(option.name): option.default for option in options_of(command)}


def origins(ctx: click.Context) -> dict[str, Origin]:
    """Returns where values come from, by parameter name; options that have their built-in default are not in it."""
    found = {}
    for option in options_of(ctx.command):
        name = str(option.name)
        value = as_written(ctx.params[name])
        match ctx.get_parameter_source(name):
            case ParameterSource.COMMANDLINE:
                words = " ".join(_words(option, ctx.params[name]))
                found[name] = Origin(words=words, typed=True)
            case ParameterSource.ENVIRONMENT:
                found[name] = Origin(words=f"{option.envvar}={os.environ.get(str(option.envvar))}", typed=False)
            case ParameterSource.DEFAULT_MAP:
                words = f"{long_name(option)} = {value} of {ctx.find_root().params.get('config')}"
                found[name] = Origin(words=words, typed=False)
            case _:
                pass
    return found


def command_line(
    ctx: click.Context, values: Mapping[str, Any], *, without: Collection[str], always: Collection[str] = ()
) -> list[str]:
    """Returns the words that give a command the same values again.

    An option is named if its value differs from the built-in default, or if the environment or `labrys.toml` gives it any
    value. So the words mean the same with and without them.

    Args:
        ctx: The command's context.
        values: The values by parameter name.
        without: Parameters that are left out.
        always: Parameters that are named whatever their value is, since something else than the built-in default would decide.
    """
    words: list[str] = []
    for option in options_of(ctx.command):
        name = str(option.name)
        if name in without or values[name] is None:
            continue
        elsewhere = option.resolve_envvar_value(ctx) is not None or name in (ctx.default_map or {})
        if elsewhere or name in always or values[name] != option.default:
            words += _words(option, values[name])
    return words


def spelled_out(options: Iterable[click.Option], values: Mapping[str, Any]) -> list[str]:
    """Returns the words that give options the values that are known of them; None and unknown values are left out."""
    return [
        word for option in options if values.get(str(option.name)) is not None
        for word in _words(option, values[str(option.name)])
    ]  # fmt: skip


def without_options(words: Sequence[str], options: Iterable[click.Option]) -> list[str]:
    """Returns a command line without some options and their values."""
    takes_value = {flag: not option.is_flag for option in options for flag in (*option.opts, *option.secondary_opts)}
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word not in takes_value:
            kept.append(word)
        elif takes_value[word]:
            next(rest, None)
    return kept


def as_written(value: Any) -> str:
    """Returns a value as it is written on the command line, with every digit of a number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < MOST_EXACT:
        return str(int(value))
    return str(value)


def _words(option: click.Option, value: Any) -> list[str]:
    if option.is_flag:
        return (option.opts if value else option.secondary_opts)[:1]
    return [option.opts[0], as_written(value)]
