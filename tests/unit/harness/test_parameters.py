"""Each number of an option has two finite bounds, and a bad path gives no traceback."""

from __future__ import annotations

import enum
from typing import Any

import click
import pytest

from cli import labrys
from harness.console.parameters import Choice, Number, PathType, Seconds, Whole, existing_file
from harness.console.sources import options_of


def commands(group: click.Group) -> list[click.Command]:
    """Returns all commands below a group."""
    ctx = click.Context(group, resilient_parsing=True)
    own = [command for name in group.list_commands(ctx) if (command := group.get_command(ctx, name)) is not None]
    return [
        nested for command in own for nested in (commands(command) if isinstance(command, click.Group) else [command])
    ]


def test_every_option_has_a_type_with_bounds() -> None:
    """No option takes a number without a finite range, or a path that may raise."""
    options = [(command.name, option) for command in commands(labrys) for option in options_of(command)]
    assert len(options) > 60
    for command, option in options:
        plain = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType | click.Path)
        assert not plain or isinstance(option.type, Number | Whole | PathType), (command, option.name)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e9", 10**400, "9" * 5000, float("nan"), True, "x", "0"])
def test_a_number_outside_of_its_range_is_refused(value: Any) -> None:
    """The value may be a text or a number, finite or not."""
    with pytest.raises(click.BadParameter):
        Number(1, 100).convert(value, None, None)


@pytest.mark.parametrize("value", ["1.5", 1.5, "inf", 10**400, "9" * 5000, True, 0, 101])
def test_a_whole_number_outside_of_its_range_is_refused(value: Any) -> None:
    """A fraction is not cut off, and true is not a number."""
    with pytest.raises(click.BadParameter):
        Whole(1, 100).convert(value, None, None)


@pytest.mark.parametrize("value", ["2q", "1h 5m", "5m1h", "s", ""])
def test_the_error_about_a_time_has_the_units(value: str) -> None:
    """Click would speak of a float range."""
    with pytest.raises(click.BadParameter) as raised:
        Seconds(1, 100).convert(value, None, None)
    assert raised.value.message == (
        f"'{value}' is not a number of seconds, or a time with the units d, h, m and s in this order, e.g. 90s, 1.5h or 1h30m."
    )


def test_every_option_of_a_duration_says_what_it_takes() -> None:
    """An option that takes a number says that, and not what click calls its range."""
    types = {type(option.type): option for command in commands(labrys) for option in options_of(command)}
    for kind, also in ((Number, "number."), (Whole, "whole number."), (Seconds, "1h30m.")):
        with pytest.raises(click.BadParameter) as raised:
            types[kind].type.convert("2q", None, None)
        assert raised.value.message.startswith("'2q' is not a ")
        assert raised.value.message.endswith(also)


def test_numbers_in_range_are_taken() -> None:
    """Both bounds are in the range."""
    assert [Number(1, 100).convert(value, None, None) for value in ("1", 1, "100", 2.5)] == [1.0, 1.0, 100.0, 2.5]
    assert [Whole(1, 100).convert(value, None, None) for value in ("1", 1, "100", 2.0)] == [1, 1, 100, 2]


@pytest.mark.parametrize("value", ["x" * 256, "a\0b", "missing", 5, True, "."])
def test_a_path_that_is_no_file_is_refused(value: Any) -> None:
    """It is not a valid name, a folder, a missing file, or not a text."""
    with pytest.raises(click.BadParameter):
        existing_file().convert(value, None, None)


def test_a_choice_takes_a_member_of_an_enumeration_by_its_text() -> None:
    """A hunt gives its runs drawn members. Their names differ from their texts."""

    class Size(enum.StrEnum):
        SMALL = "very small"

    assert Choice(["very small"]).convert(Size.SMALL, None, None) == "very small"
    with pytest.raises(click.BadParameter, match="is not one of the choices"):
        Choice(["very small"]).convert("SMALL", None, None)
