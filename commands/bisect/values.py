"""What a bisection searches: an ordered list of values, each of which changes a run in one way.

The list begins at the good end. The values are the releases that a system can install, the values of any other option, or the
run with more and more of its known defects repaired. Commits of a repository are in `commands.bisect.commits`. All come from
the command line and from the declarations of options, never from the folder of a run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import click

from harness.console import sources as opt
from harness.console.plain import name as plain_name
from harness.console.suggest import did_you_mean
from harness.declare import click_options
from harness.errors import InputError
from harness.option_values import released, repairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commands.options.compose import Settled

MENDS: Final = "mends"
MOST: Final = 10_000
RELEASED: Final = "as it is"
EMPTY: Final = "(empty)"  # the name of an empty value
_NUMBER: Final = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A value of the list.

    Attributes:
        name: The value, as people name it.
        changes: The values that the run gets, by parameter name.
    """

    name: str
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is searched.

    Attributes:
        flag: The option, e.g. `--zookeeper-version`, or `mends`.
        points: The values, from the good end to the bad one.
        backwards: Whether the bad end comes first in the order of the values, so that the search finds what ends the bug.
        noun: What a value is.
        build: What makes the values, as words; empty: they are there.
        changes_of: Returns the values that the run gets, by parameter name.
    """

    flag: str
    points: Sequence[Point]
    backwards: bool = False
    noun: str = "value"
    build: Sequence[str] = ()
    changes_of: Callable[[Point], Mapping[str, Any]] = attrgetter("changes")


def axis_of(settled: Settled, over: str | None, values: Sequence[str], good: str | None, bad: str | None) -> Axis:
    """Returns what is searched.

    Args:
        settled: The run.
        over: The long name of an option, or `mends`; None: the option with the release of the system.
        values: The values in their order; empty: the releases in the order of their versions.
        good: The good end; None: the first value.
        bad: The bad end; None: the last value, or the release of the run.

    Raises:
        InputError: There is no such option or value, or there are fewer than two values.
    """
    if over == MENDS:
        if values or good is not None or bad is not None:
            raise InputError(
                f"--over {MENDS} goes from the run as it is to all repairs; leave out --good, --bad, --value"
            )
        return _mends(settled)
    releases = released(settled.options.system.type.Options)
    option = option_of(settled, over, releases)
    name = str(option.name)
    texts = list(values)
    if not texts:
        if name not in releases:
            raise InputError(f"{option.opts[0]} has no list of releases; give --value for each value, in their order")
        texts = sorted(releases[name], key=release_order)
        good_or_none = "give --good RELEASE, which does not have the bug"
        if good is None:
            raise InputError(f"{good_or_none}; {option.opts[0]} has {', '.join(texts)}")
        bad = str(settled.options.values()[name]) if bad is None else bad
    if len(set(texts)) < len(texts):
        raise InputError("--value: expected each value once")
    first = _place(texts, texts[0] if good is None else good, "--good")
    last = _place(texts, texts[-1] if bad is None else bad, "--bad")
    if first == last:
        raise InputError(f"--good and --bad are both {plain_name(texts[first])}; expected two values")
    between = texts[first : last + 1] if first < last else texts[last : first + 1][::-1]
    points = tuple(Point(name=text or EMPTY, changes={name: converted(option, text)}) for text in between)
    return Axis(flag=option.opts[0], points=points, backwards=last < first)


def release_order(text: str) -> tuple[list[int], bool, str]:
    """Returns the key of a release in the order of versions: 3.9.2 < 3.9.10-rc1 < 3.9.10."""
    version, _, before = text.partition("-")
    return [int(number) for number in _NUMBER.findall(version)], not before, before


def option_of(settled: Settled, over: str | None, releases: Mapping[str, Sequence[str]]) -> click.Option:
    """Returns the option that is searched.

    Raises:
        InputError: The system has no option for its release, or the run has no such option.
    """
    types = (settled.options.system.type.Options, settled.options.workload.type.Options)
    own = {
        opt.long_name(parameter): parameter
        for part in types
        for parameter in click_options(part)
        if not parameter.multiple
    }
    if over is None:
        choices = [parameter for parameter in own.values() if parameter.name in releases]
        if len(choices) != 1:
            raise InputError(
                f"the system {plain_name(settled.options.system.name)} has no option for its release; give --over OPTION with "
                f"--value for each value, or --over {MENDS}"
            )
        return choices[0]
    flag = over.removeprefix("--")
    if flag not in own:
        raise InputError(
            f"--over {plain_name(over)}: expected {MENDS}, or an option of the system or of the workload. "
            f"{did_you_mean(flag, own)}"
        )
    return own[flag]


def converted(option: click.Option, text: str) -> Any:
    """Returns a value of an option.

    Raises:
        InputError: The option cannot have it.
    """
    if option.is_flag:
        if text not in {"true", "false"}:
            raise InputError(f"--value {plain_name(text)}: {option.opts[0]} takes true or false here")
        return text == "true"
    try:
        return option.type.convert(text, option, None)
    except click.BadParameter as error:
        raise InputError(f"--value {plain_name(text)} of {option.opts[0]}: {error.message}") from error


def _place(texts: Sequence[str], text: str, flag: str) -> int:
    """Returns the place of a value.

    Raises:
        InputError: It is none of them.
    """
    if text not in texts:
        raise InputError(f"{flag} {plain_name(text)}: expected one of {', '.join(map(plain_name, texts))}")
    return list(texts).index(text)


def _mends(settled: Settled) -> Axis:
    """Returns the run with all repairs, with all but the last one, and so on, down to the run as it is.

    Raises:
        InputError: The system has no known defect that can be repaired.
    """
    options = settled.options.system.type.Options
    values = settled.options.values()
    points = [Point(name=RELEASED, changes={})]
    changes: dict[str, Any] = {}
    while (left := repairs(options, values | changes)) and len(points) < MOST:
        name, more = next(iter(left.items()))
        changes = changes | more
        points.append(Point(name=f"{name} repaired{'' if len(points) == 1 else ' too'}", changes=changes))
    if len(points) == 1:
        raise InputError(
            f"the system {plain_name(settled.options.system.name)} has no known defect that Labrys can repair here"
        )
    return Axis(flag=MENDS, points=points[::-1], backwards=True, noun="repair")
