"""The types of option values from the command line, environment variables and `labrys.toml`.

Each number has a range with two finite bounds, and a value outside is an error. A path must be accessible.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click
from click.core import ParameterSource

from harness.console import plugins, system_suites
from harness.console.documents import shown
from harness.console.program import command_of
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.suites.thresholds import read_threshold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from click.core import Context, Parameter
    from click.shell_completion import CompletionItem

MAX_SEED: Final = 2**63 - 1
MAX_RUN_S: Final = 604_800.0  # a week; no run is longer
MAX_WAIT_S: Final = 86_400.0
_UNITS_S: Final = (86_400.0, 3600.0, 60.0, 1.0)
_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_WITH_UNITS: Final = re.compile(rf"(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")


class Choice(click.Choice[str]):
    """One of some texts. For another text, the error has the nearest one, or all of them if none is near."""

    def normalize_choice(self, choice: object, ctx: Context | None) -> str:
        """Returns the text of a value. Click would compare the name of a member of an enumeration, which a hunt passes on."""
        return super().normalize_choice(str(choice), ctx)

    def get_invalid_choice_message(self, value: Any, ctx: Context | None) -> str:  # noqa: ARG002 - the same in each context
        """Returns the error for a text that is none of them."""
        return f"{shown(str(value))} is not one of the choices. {did_you_mean(str(value), map(str, self.choices))}"


class Number(click.FloatRange):
    """A number with two finite bounds.

    Attributes:
        also: What else a value can be, as the end of an error.
    """

    also: ClassVar[str] = ""

    def __init__(self, low: float, high: float, *, above: bool = False) -> None:
        """Sets the bounds.

        Args:
            low: The lower bound.
            high: The upper bound.
            above: Whether the lower bound itself is excluded.
        """
        super().__init__(min=low, max=high, min_open=above)

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """Returns the value as a number.

        Raises:
            click.BadParameter: It is not a number, or out of range.
        """
        if isinstance(value, bool):
            self.fail(f"{str(value).lower()} is not a number.", param, ctx)
        if isinstance(value, str) and not _is_number(value):
            self.fail(f"{shown(value)} is not a number{self.also}.", param, ctx)
        try:
            number = float(super().convert(value, param, ctx))
        except OverflowError:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Seconds(Number):
    """A number of seconds, or a text with units such as `90s`, `1m`, `1.5h`, `1h30m` or `14d`."""

    also = " of seconds, or a time with the units d, h, m and s in this order, e.g. 90s, 1.5h or 1h30m"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """Returns the seconds.

        Raises:
            click.BadParameter: It is neither a number nor a time with units, or out of range.
        """
        seconds = seconds_of(value) if isinstance(value, str) else None
        return super().convert(value if seconds is None else seconds, param, ctx)


def _is_whole(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def seconds_of(text: str) -> float | None:
    """Returns the seconds of a text with units, e.g. 5400.0 for `1.5h` or `1h30m`; None if it has another form."""
    match = _WITH_UNITS.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    return sum(float(number) * unit_s for number, unit_s in zip(match.groups(), _UNITS_S, strict=True) if number)


class Whole(click.IntRange):
    """A whole number with two finite bounds."""

    def __init__(self, low: int, high: int) -> None:
        """Sets the lower and the upper bound."""
        super().__init__(min=low, max=high)

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        """Returns the value as a number.

        Raises:
            click.BadParameter: It is not a whole number, or out of range.
        """
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            self.fail(f"{str(value).lower()} is not a whole number.", param, ctx)
        if isinstance(value, str) and not _is_whole(value):
            self.fail(f"{shown(value)} is not a whole number.", param, ctx)
        return int(super().convert(value, param, ctx))


class PathType(click.Path):
    """A path that is accessible."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Returns the path.

        Raises:
            click.BadParameter: It is not a path, or not of this type.
        """
        if not isinstance(value, str | os.PathLike):
            self.fail(f"{value!r} is not a path.", param, ctx)
        try:
            os.lstat(value)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.fail(f"{os.fspath(value)!r} cannot be accessed: {error.strerror}.", param, ctx)
        except ValueError as error:
            self.fail(f"{os.fspath(value)!r} is not a path: {error}.", param, ctx)
        return super().convert(value, param, ctx)


class PluginName(click.ParamType[str]):
    """The name of an installed plug-in; or the place of one, e.g. `MODULE:CLASS`, if `places` allows that."""

    def __init__(self, group: str, *, places: bool = True) -> None:
        """Takes one of the groups of `harness.console.plugins`, and whether a place is allowed."""
        self.name = plugins.SINGULAR[group]
        self.group = group
        self.places = places

    def get_metavar(self, param: Parameter, ctx: Context) -> str:  # noqa: ARG002 - the same for all
        """Returns the allowed names for the help."""
        return f"[{'|'.join([*plugins.plugins(self.group), *([plugins.IN_MODULE, plugins.IN_FILE] if self.places else [])])}]"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Returns the name.

        Raises:
            click.BadParameter: There is no such plug-in, or `labrys.toml` has a place.
        """
        by_user = ctx is None or param is None or given_by_user(ctx, str(param.name))
        try:
            return plugins.find(self.group, str(value), by_place=self.places and by_user).name
        except InputError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Returns the installed plug-ins whose names begin with the incomplete word; if there are none, files."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        completions = [
            CompletionItem(plugin) for plugin in plugins.plugins(self.group) if plugin.startswith(incomplete)
        ]
        return completions or [CompletionItem(incomplete, type="file")] * self.places


class ThresholdText(click.ParamType[str]):
    """A threshold, as a text in the spelling of Labrys. A variable has several of them, separated by commas."""

    name = "threshold"
    envvar_list_splitter = ","

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Returns the threshold.

        Raises:
            click.BadParameter: It does not fit the grammar.
        """
        try:
            return str(read_threshold(value if isinstance(value, str) else repr(value)))
        except InputError as error:
            self.fail(str(error), param, ctx)


class ProgramText(click.ParamType[str]):
    """A program with arguments, as in a shell; see `harness.console.program`. An empty text names none."""

    name = "command"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Returns the text.

        Raises:
            click.BadParameter: It names no program that can run.
        """
        try:
            if value:
                command_of(str(value))
        except InputError as error:
            self.fail(str(error), param, ctx)
        return str(value)

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Lets the shell complete files."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        return [CompletionItem(incomplete, type="file")]


class Completed(click.ParamType[str]):
    """A text that a shell can complete."""

    name = "text"

    def __init__(self, candidates: Callable[[str], Iterable[str]] | None = None) -> None:
        """Takes a function that returns texts for an incomplete word; None if the text is the name of a file."""
        self.candidates = candidates

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Returns the texts that begin with the incomplete word, or lets the shell complete files."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        texts = [] if self.candidates is None else self.candidates(incomplete)
        completions = [CompletionItem(text) for text in texts if text.startswith(incomplete)]
        return completions if completions or self.candidates is not None else [CompletionItem(incomplete, type="file")]


class SuiteFile(PathType):
    """The file of a suite, the name of a suite that an installed system has, or a folder of regressions.

    A shell completes the files in the working folder and in `suites/`, and the names.
    """

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Returns the path.

        Raises:
            click.BadParameter: It is neither a path nor the name of a suite.
        """
        if isinstance(value, str) and system_suites.is_name(value):
            try:
                value = system_suites.suite_named(value)
            except InputError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
        """Returns the files and the names that begin with the incomplete word."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        patterns = ("suites/*.toml", "*.toml", "regressions", "regressions/*/")
        files = [str(path) for pattern in patterns for path in sorted(Path().glob(pattern))]
        completions = [
            CompletionItem(text) for text in (*files, *system_suites.suites()) if text.startswith(incomplete)
        ]
        return completions or super().shell_complete(ctx, param, incomplete)


def given_by_user(ctx: Context, name: str) -> bool:
    """Returns whether an option's value is from the command line or a variable, and not from `labrys.toml`."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP


def existing_file() -> PathType:
    """Returns the type of an existing file."""
    return PathType(exists=True, dir_okay=False, path_type=Path)


def existing_folder() -> PathType:
    """Returns the type of an existing folder."""
    return PathType(exists=True, file_okay=False, path_type=Path)


def folder() -> PathType:
    """Returns the type of a folder that exists or can be made."""
    return PathType(file_okay=False, path_type=Path)
