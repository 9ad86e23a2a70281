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
from harness.console.plain import name as plain_name
from harness.console.plain import one_line
from harness.console.suggest import did_you_mean
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeVar

    Command = TypeVar("Command", bound="Callable[..., Any] | click.Command")

_META: Final = "labrys"
_KINDS: Final[Mapping[Any, str]] = {str: "a text", bool: "true or false", (int, float): "a number"}


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
    return dataclasses.field(default=default, metadata={_META: declared})


def with_default(options: type, name: str, default: Any) -> Any:
    """Returns an option of another dataclass with another default, for a subclass of it.

    Args:
        options: The dataclass that declares the option.
        name: The name of its field.
        default: The default of the subclass.
    """
    (found,) = (each for each in dataclasses.fields(options) if each.name == name)
    return dataclasses.field(default=default, metadata=found.metadata)


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
    ((_, flags, attributes),) = (each for each in _declarations(options) if each[0] == name)
    return click.option(flags, name, cls=DeclaredOption, **attributes, **more)


def with_options(*options: type) -> Callable[[Command], Command]:
    """Returns a decorator that gives a click command the options of dataclasses, in their order."""

    def decorate(command: Command) -> Command:
        for name, flags, attributes in reversed([each for part in options for each in _declarations(part)]):
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
        declared = field.metadata.get(_META)
        if declared is None:
            raise TypeError(f"{options.__qualname__}.{field.name} has no help; declare it with harness.declare.option")
        if not judging or declared.judges:
            flags, attributes = _declaration(
                field.name, kinds[field.name], field.default, declared, options.__qualname__
            )
            topic = declared.topic or getattr(options, "TOPIC", None)
            yield field.name, flags, attributes | {"topic": topic, "main": declared.main}


def hunted(options: type) -> dict[str, Sequence[Any]]:
    """Returns the values that the runs of a hunt draw from, by the names of the fields that have such values."""
    declared = {field.name: field.metadata.get(_META) for field in dataclasses.fields(options)}
    return {name: each.hunted for name, each in declared.items() if each is not None and each.hunted}


def shrinking(options: type) -> dict[str, float]:
    """Returns the numbers that `labrys shrink` makes smaller, each with the value of the smallest run."""
    declared = {field.name: field.metadata.get(_META) for field in dataclasses.fields(options)}
    return {
        name: each.shrinks_to for name, each in declared.items() if each is not None and each.shrinks_to is not None
    }


def planted(options: type, values: Mapping[str, Any]) -> dict[str, Needs]:
    """Returns what the planted bugs among the values need, by the names of the fields that plant them.

    Args:
        options: The dataclass.
        values: The values of a run by parameter name.
    """
    declared = {field.name: field.metadata.get(_META) for field in dataclasses.fields(options)}
    return {
        name: each.needs[values[name]]
        for name, each in declared.items()
        if each is not None and values.get(name) in each.needs
    }


def released(options: type) -> dict[str, Sequence[str]]:
    """Returns the releases of a program that runs can choose from, by the name of the field that chooses; usually one field."""
    kinds = typing.get_type_hints(options)
    declared = {field.name: field.metadata.get(_META) for field in dataclasses.fields(options)}
    return {
        name: tuple(str(each) for each in typing.get_args(kinds[name]))
        for name, each in declared.items()
        if each is not None and each.releases
    }


def repairs(options: type, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the known defects of the program that a run has and that other values repair, e.g. `--mend 4`.

    Args:
        options: The dataclass.
        values: The values of the run by parameter name.

    Returns:
        For each defect, the changed values by parameter name. The repair of a planted bug is the default of its option.
    """
    found: dict[str, dict[str, Any]] = {}
    for field in dataclasses.fields(options):
        declared = field.metadata.get(_META)
        if declared is None or field.name not in values:
            continue
        value, flag = values[field.name], _flag(field.name, declared)
        if value in declared.needs and declared.needs[value].plants:
            found[f"{flag} {value}"] = {field.name: field.default}
        if declared.repairs is not None:
            found |= {f"{flag} {name}": {field.name: other} for name, other in declared.repairs(value).items()}
    return found


def patch_of(options: Any, defect: str) -> str:
    """Returns the change of the program's sources that repairs a known defect, as text; empty if there is none.

    Args:
        options: The options of the run, an instance of the dataclass.
        defect: The defect, as `repairs` names it.
    """
    flag, _, name = defect.partition(" ")
    for field in dataclasses.fields(options):
        declared = field.metadata.get(_META)
        if declared is not None and declared.patch is not None and flag == _flag(field.name, declared):
            text: str = declared.patch(options, name)
            return text
    return ""


def _flag(name: str, declared: Declared) -> str:
    return declared.flag or f"--{name.replace('_', '-')}"


def _declaration(name: str, kind: Any, default: Any, declared: Declared, owner: str) -> tuple[str, dict[str, Any]]:
    """Returns the flags of a field, and the attributes of its click option."""
    flag = _flag(name, declared)
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
    kinds = [each for each in typing.get_args(kind) if each is not type(None)]
    if type(None) in typing.get_args(kind) and len(kinds) == 1:
        kind = kinds[0]
    if typing.get_origin(kind) is Literal:
        return Choice(list(typing.get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        return Choice([str(each) for each in kind])
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


def build(options: type, values: Mapping[str, Any]) -> Any:
    """Returns an object of the dataclass with the values of a command line, and defaults for missing ones.

    Args:
        options: The dataclass.
        values: Values by parameter name; values that are not its fields are ignored.

    Raises:
        InputError: The dataclass refuses the values together.
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


def hold_bounds(options: object) -> None:
    """Refuses a number outside of the bounds of its option. Options that Python code makes pass no command line.

    Args:
        options: An object of the dataclass; its `__post_init__` calls this.

    Raises:
        InputError: There is such a number.
    """
    for field in dataclasses.fields(options):  # type: ignore[arg-type]  # a dataclass
        declared, value = field.metadata.get(_META), getattr(options, field.name)
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


def recorded(options: type, values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Returns the options of a file that a verdict depends on, and checks their types and ranges.

    The file may come from anyone. Other options are ignored, because they change no verdict.

    Args:
        options: The dataclass.
        values: The values in the file, by field name.
        source: The file, for errors.

    Raises:
        InputError: A value has another type than its option, or is out of range.
    """
    found = {}
    for each in click_options(options, judging=True):
        name = str(each.name)
        if name not in values or (values[name] is None and each.default is None):
            continue
        found[name] = _from_document(each, values[name], f"{source}: the option {name.replace('_', '-')}")
    return found


def assigned(options: type, settings: Sequence[str], *, flag: str, owner: str) -> dict[str, Any]:
    """Returns the values of settings `NAME=VALUE` on the command line, for options that a verdict depends on.

    Args:
        options: The dataclass.
        settings: The settings; of two with the same name, the later one counts.
        flag: The flag of the settings, for errors.
        owner: The owner of the options, for errors, e.g. `the workload set`.

    Raises:
        InputError: A setting has another form, names no such option, or has a value that does not fit.
    """
    known = {str(each.name).replace("_", "-"): each for each in click_options(options, judging=True)}
    found = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not key or not equals:
            raise InputError(f"{flag}: expected NAME=VALUE, found {plain_name(setting)}")
        each = known.get(key.replace("_", "-"))
        if each is None:
            hint = did_you_mean(key, known) if known else "It has no option that a verdict depends on."
            raise InputError(f"{flag}: {owner} has no option {plain_name(key)} that a verdict depends on. {hint}")
        found[str(each.name)] = _of_type(each, text, f"{flag} {plain_name(key)}")
    return found


def _from_document(option_of: click.Option, value: Any, where: str) -> Any:
    """Returns a value of a document, converted for its option. A text does not count as a number, nor a number as a text."""
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
