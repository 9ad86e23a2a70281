"""The types of option values from the command line, environment variables and `labrys.toml`.

The law: every number has a range with two finite ends, and what is outside of it is refused when it is read. A path is one
that the system can look at, or a sentence says why not.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from harness import plugins
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from click.core import Context, Parameter
    from click.shell_completion import CompletionItem

MAX_SEED: Final = 2**63 - 1
MAX_RUN_S: Final = 604_800.0  # a week; no run is longer
MAX_WAIT_S: Final = 86_400.0


class Number(click.FloatRange):
    """A number with two finite ends."""

    def __init__(self, low: float, high: float, *, above: bool = False) -> None:
        """Sets the ends.

        Args:
            low: The least value.
            high: The greatest.
            above: Whether the least value itself is outside.
        """
        super().__init__(min=low, max=high, min_open=above)

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        """Returns the number that a text or a number says.

        Raises:
            click.BadParameter: It is none, or outside of the range.
        """
        if isinstance(value, bool):
            self.fail(f"{str(value).lower()} is not a number.", param, ctx)
        try:
            number = float(super().convert(value, param, ctx))
        except OverflowError:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Whole(click.IntRange):
    """A whole number with two finite ends."""

    def __init__(self, low: int, high: int) -> None:
        """Sets the least and the greatest value."""
        super().__init__(min=low, max=high)

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        """Returns the number that a text or a number says.

        Raises:
            click.BadParameter: It is none, is not whole, or is outside of the range.
        """
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            self.fail(f"{str(value).lower()} is not a whole number.", param, ctx)
        return int(super().convert(value, param, ctx))


class PathType(click.Path):
    """A path that the system can look at."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Returns the path.

        Raises:
            click.BadParameter: It is none, or not of the kind that is asked for.
        """
        if not isinstance(value, str | os.PathLike):
            self.fail(f"{value!r} is not a path.", param, ctx)
        try:
            os.lstat(value)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.fail(f"{os.fspath(value)!r} cannot be looked at: {error.strerror}.", param, ctx)
        except ValueError as error:
            self.fail(f"{os.fspath(value)!r} is not a path: {error}.", param, ctx)
        return super().convert(value, param, ctx)


class PluginName(click.ParamType[str]):
    """The name of an installed plug-in, or `module:Class` where that may be said."""

    def __init__(self, group: str, *, places: bool = True) -> None:
        """Takes one of the groups of `harness.plugins`, and whether a place in a module may be said."""
        self.name = plugins.SINGULAR[group]
        self.group = group
        self.places = places

    def get_metavar(self, param: Parameter, ctx: Context) -> str:  # noqa: ARG002 - the same for all
        """Returns the names that may be said, as the help shows them."""
        return f"[{'|'.join([*plugins.plugins(self.group), *(['MODULE:CLASS'] if self.places else [])])}]"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str:
        """Returns the name.

        Raises:
            click.BadParameter: There is no such plug-in, or a file of defaults names a place.
        """
        by_person = ctx is None or param is None or said_by_person(ctx, str(param.name))
        try:
            return plugins.find(self.group, str(value), by_place=self.places and by_person).name
        except InputError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Returns the installed plug-ins whose names begin like that."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        return [CompletionItem(each) for each in plugins.plugins(self.group) if each.startswith(incomplete)]


class Completed(click.ParamType[str]):
    """A text that a shell can complete."""

    name = "text"

    def __init__(self, candidates: Callable[[str], Iterable[str]] | None = None) -> None:
        """Takes what returns the texts that an unfinished one may become; None: it is the name of a file."""
        self.candidates = candidates

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Returns the texts that begin with what is typed; files where there are none."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        texts = [] if self.candidates is None else self.candidates(incomplete)
        found = [CompletionItem(text) for text in texts if text.startswith(incomplete)]
        return found if found or self.candidates is not None else [CompletionItem(incomplete, type="file")]


class SuiteFile(PathType):
    """The file of a suite, or a folder of regressions; a shell completes those in the working folder and in `suites/`."""

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
        """Returns the files that begin like that."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        patterns = ("suites/*.toml", "*.toml", "regressions", "regressions/*/")
        files = [str(path) for pattern in patterns for path in sorted(Path().glob(pattern))]
        found = [CompletionItem(file) for file in files if file.startswith(incomplete)]
        return found or super().shell_complete(ctx, param, incomplete)


def said_by_person(ctx: Context, name: str) -> bool:
    """Says whether an option's value is from the command line or a variable, not from the file of defaults."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP


def existing_file() -> PathType:
    """Returns the type of a file that is there."""
    return PathType(exists=True, dir_okay=False, path_type=Path)


def existing_folder() -> PathType:
    """Returns the type of a folder that is there."""
    return PathType(exists=True, file_okay=False, path_type=Path)


def folder() -> PathType:
    """Returns the type of a folder that is there or can be made."""
    return PathType(file_okay=False, path_type=Path)
