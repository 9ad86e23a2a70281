"""Declares options as one frozen dataclass, with type, range, default and help of each option.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class MyStoreOptions:
        quorum_reads: bool = option(True, "Whether reads ask a quorum.")
        heartbeat_ms: int = option(100, "Milliseconds between heartbeats of the leader.", low=1, high=10_000)
        profile: Literal["small", "large"] = option("small", "How much memory a node gets.")

Flags, `labrys.toml`, environment variables, suites, the reproduce line and `test.json` follow from it: `--heartbeat-ms`,
`heartbeat-ms`, `LABRYS_TEST_HEARTBEAT_MS`. A field has the type `bool`, `int`, `float`, `str`, `Path`, `Literal` of texts, or a
`StrEnum`. A number has a finite lower and a finite upper bound.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from harness.console.parameters import Choice, Number, Whole, existing_file
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeVar

    Command = TypeVar("Command", bound="Callable[..., Any] | click.Command")

META: Final = "labrys"


class Topic(enum.StrEnum):
    """What an option is about: a heading of the help of commands with many options."""

    CLUSTER = "Cluster"
    FAULTS = "Faults"
    LOAD = "Load"
    END = "End of the run"
    OUTPUT = "Output"


class DeclaredOption(click.Option):
    """An option of a dataclass on the command line.

    Attributes:
        topic: The heading of the help that it belongs to; None: it is an option of a system, a workload or a command.
        main: Whether it stands at the beginning of the help, because most users need it.
    """

    def __init__(self, *args: Any, topic: Topic | None = None, main: bool = False, **attributes: Any) -> None:
        """Takes what click takes, and the attributes above."""
        super().__init__(*args, **attributes)
        self.topic, self.main = topic, main


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The declaration of a field besides its type and default.

    Attributes:
        help: One line.
        low: The lower bound.
        high: The upper bound.
        above: Whether the lower bound itself is excluded.
        metavar: The placeholder of the value in the help.
        judges: Whether a verdict depends on it; `labrys check` and `labrys analyze` have it then too.
        hunted: The values that each run of `labrys hunt` draws one of, unless the user gives one; empty: the default.
        shrinks_to: The value of the smallest run, for a number; `labrys shrink` tries to reach it. None: the number stays.
        needs: For each value that plants a bug, what a run needs to show the bug.
        repairs: Returns for a value the known defects of the program that it leaves, each with the value that repairs it too;
            None if the option repairs nothing.
        patch: Returns the change of the sources that repairs a known defect, as text, from the options and the defect;
            None if no defect has one.
        releases: Whether the values are releases of the program; `labrys bisect` searches among them.
        flag: The flag, if it has another name than the field, or if a `bool` has no `--no-` form.
        kind: The type of click, if the type of the field does not determine it.
        shown: Whether the help has the default; None: if there is one.
        multiple: Whether the option can be repeated; then the field is a tuple.
        hidden: Whether the help leaves it out.
        topic: The heading of the help that it belongs to; None: that of the dataclass, its `TOPIC`.
        main: Whether it stands at the beginning of the help.
        early: Whether it is read before the others, because their values depend on it.
    """

    help: str | None
    low: float | None
    high: float | None
    above: bool
    metavar: str | None
    judges: bool
    hunted: Sequence[Any]
    shrinks_to: float | None
    needs: Mapping[str, Needs]
    repairs: Callable[[Any], Mapping[str, Any]] | None
    patch: Callable[[Any, str], str] | None
    releases: bool
    flag: str | None
    kind: click.ParamType[Any] | None
    shown: bool | None
    multiple: bool
    hidden: bool
    topic: Topic | None
    main: bool
    early: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a run needs to show a planted bug. A run that lacks any of it cannot show the bug.

    `labrys hunt` gives it to its runs, or refuses options that contradict it. `labrys test` prints a warning.

    Attributes:
        plants: Whether the value plants a bug. False: the system cannot work without what it needs, e.g. the number of nodes.
        options: For another option of the run, by parameter name, its possible values; a hunt prefers the first one.
        at_least: For another option of the run, by parameter name, its smallest value.
        workloads: The possible workloads; empty: all.
        faults: Kinds of faults, one of which the run needs; empty: none. A kind stands for all kinds with the same class.
    """

    options: Mapping[str, Sequence[str | int]] = dataclasses.field(default_factory=dict)
    at_least: Mapping[str, int] = dataclasses.field(default_factory=dict)
    workloads: Sequence[str] = ()
    faults: Sequence[str] = ()
    plants: bool = True


def option(
    default: Any,
    help: str | None,  # noqa: A002 - the name in click
    *,
    low: float | None = None,
    high: float | None = None,
    above: bool = False,
    metavar: str | None = None,
    judges: bool = False,
    hunted: Sequence[Any] = (),
    shrinks_to: float | None = None,
    needs: Mapping[str, Needs] | None = None,
    repairs: Callable[[Any], Mapping[str, Any]] | None = None,
    patch: Callable[[Any, str], str] | None = None,
    releases: bool = False,
    flag: str | None = None,
    kind: click.ParamType[Any] | None = None,
    shown: bool | None = None,
    multiple: bool = False,
    hidden: bool = False,
    topic: Topic | None = None,
    main: bool = False,
    early: bool = False,
) -> Any:
    """Returns a field of the dataclass; see the module and `Declared`."""
    declared = Declared(
        help=help,
        low=low,
        high=high,
        above=above,
        metavar=metavar,
        judges=judges,
        hunted=tuple(hunted),
        shrinks_to=shrinks_to,
        needs=needs or {},
        repairs=repairs,
        patch=patch,
        releases=releases,
        flag=flag,
        kind=kind,
        shown=shown,
        multiple=multiple,
        hidden=hidden,
        topic=topic,
        main=main,
        early=early,
    )
    return dataclasses.field(default=default, metadata={META: declared})


def with_default(options: type, name: str, default: Any) -> Any:
    """Returns an option of another dataclass with another default, for a subclass of it.

    Args:
        options: The dataclass that declares the option.
        name: The name of its field.
        default: The default of the subclass.
    """
    (field,) = (field for field in dataclasses.fields(options) if field.name == name)
    return dataclasses.field(default=default, metadata=field.metadata)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """The options of a plug-in without options."""


def click_options(options: type, *, judging: bool = False) -> list[click.Option]:
    """Returns the options of a dataclass as click options, in the order of the fields.

    Args:
        options: The dataclass.
        judging: Whether to return only options that a verdict depends on.

    Raises:
        TypeError: It is not a dataclass of options, which is a bug of its author.
    """
    return [
        DeclaredOption([flags, name], **attributes)
        for name, flags, attributes in _declarations(options, judging=judging)
    ]


def with_option(options: type, name: str, **more: Any) -> Callable[[Command], Command]:
    """Returns a decorator that gives a click command one option of a dataclass.

    Args:
        options: The dataclass.
        name: The field.
        more: Further arguments of `click.option`.
    """
    ((_, flags, attributes),) = (declaration for declaration in _declarations(options) if declaration[0] == name)
    return click.option(flags, name, cls=DeclaredOption, **attributes, **more)


def with_options(*options: type) -> Callable[[Command], Command]:
    """Returns a decorator that gives a click command the options of dataclasses, in their order."""

    def decorate(command: Command) -> Command:
        for name, flags, attributes in reversed(
            [declaration for part in options for declaration in _declarations(part)]
        ):
            command = click.option(flags, name, cls=DeclaredOption, **attributes)(command)
        return command

    return decorate


def _declarations(options: type, *, judging: bool = False) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields the name of each field with its flags, and the attributes of its click option.

    Raises:
        TypeError: It is not a dataclass of options, which is a bug of its author.
    """
    if not dataclasses.is_dataclass(options):
        raise TypeError(f"expected a dataclass of options, found {options!r}")
    kinds = typing.get_type_hints(options)
    for field in dataclasses.fields(options):
        declared = field.metadata.get(META)
        if declared is None:
            raise TypeError(f"{options.__qualname__}.{field.name} has no help; declare it with harness.declare.option")
        if not judging or declared.judges:
            flags, attributes = _declaration(
                field.name, kinds[field.name], field.default, declared, options.__qualname__
            )
            topic = declared.topic or getattr(options, "TOPIC", None)
            yield field.name, flags, attributes | {"topic": topic, "main": declared.main}


def flag_of(name: str, declared: Declared) -> str:
    """Returns the flag of a field."""
    return declared.flag or f"--{name.replace('_', '-')}"


def _declaration(name: str, kind: Any, default: Any, declared: Declared, owner: str) -> tuple[str, dict[str, Any]]:
    """Returns the flags of a field, and the attributes of its click option."""
    flag = flag_of(name, declared)
    attributes: dict[str, Any] = {"help": declared.help, "hidden": declared.hidden, "is_eager": declared.early}
    if kind is bool and declared.flag is not None:
        return flag, attributes | {"is_flag": True, "default": default}
    if kind is bool:
        shown = True if declared.shown is None else declared.shown
        return f"{flag}/--no-{flag[2:]}", attributes | {"default": default, "show_default": shown}
    shown = default is not None and default != "" if declared.shown is None else declared.shown
    return flag, attributes | {
        "type": declared.kind or _click_type(kind, declared, f"{owner}.{name}"),
        "default": str(default) if isinstance(default, enum.Enum) else default,
        "show_default": shown,
        "metavar": declared.metavar,
        "multiple": declared.multiple,
    }


def _click_type(kind: Any, declared: Declared, where: str) -> click.ParamType[Any]:
    kinds = [get_arg for get_arg in typing.get_args(kind) if get_arg is not type(None)]
    if type(None) in typing.get_args(kind) and len(kinds) == 1:
        kind = kinds[0]
    if typing.get_origin(kind) is Literal:
        return Choice(list(typing.get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        return Choice([str(choice) for choice in kind])
    if kind in {int, float}:
        if declared.low is None or declared.high is None:
            raise TypeError(f"{where} is a number without bounds; declare `low` and `high`")
        return (
            Whole(int(declared.low), int(declared.high))
            if kind is int
            else Number(declared.low, declared.high, above=declared.above)
        )
    if kind is Path:
        return existing_file()
    if kind is str:
        return click.STRING
    raise TypeError(f"{where} has the type {kind!r}, which no option can have")


def hold_bounds(options: object) -> None:
    """Refuses a number outside of the bounds of its option. Options that Python code makes pass no command line.

    Args:
        options: An object of the dataclass; its `__post_init__` calls this.

    Raises:
        InputError: There is such a number.
    """
    for field in dataclasses.fields(options):  # type: ignore[arg-type]  # a dataclass
        declared, value = field.metadata.get(META), getattr(options, field.name)
        if not isinstance(declared, Declared) or not isinstance(value, int | float) or isinstance(value, bool):
            continue
        low, high = declared.low, declared.high
        if low is None or high is None:
            continue
        if not low <= value <= high or (declared.above and value == low):
            least = f"above {low:,}" if declared.above else f"from {low:,}"
            raise InputError(
                f"{field.name.replace('_', '-')}: expected a number {least}{', and at most' if declared.above else ' to'} "
                f"{high:,}, not {value:,}"
            )
