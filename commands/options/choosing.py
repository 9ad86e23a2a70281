"""A command whose options depend on the system and the workload.

The command first reads `--system` and `--workload`, and imports what they name. Then it adds the options of both to its own.
So `labrys test --system NAME --help` shows the options of this system. If an option belongs to another system, the error
names it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click
from click.core import ParameterSource, iter_params_for_processing

from clusters.options import ALONE
from commands.options import promised
from commands.options.suite_case import SUITE_CASE
from harness.blame import Blamable, blaming
from harness.console import plugins
from harness.console import sources as opt
from harness.console.config import DEFAULTS_OF
from harness.console.parameters import PluginName
from harness.console.plain import name as plain_name
from harness.declare import DeclaredOption, Topic, click_options, option
from harness.errors import InputError, LabrysError
from harness.system import System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


SYSTEM, WORKLOAD = "system_name", "workload_name"
SIMULATED_SYSTEM = "sim-raft"  # that commands of the simulator take by default
PIPED_SYSTEM = "maelstrom"  # that runs the programs of `labrys new node`
CLUSTER = "cluster"
MOST_USED: Final = "Options that most users need"
# The file of a suite alone decides these; `labrys.toml` may have them for `labrys test`.
DECIDED_BY_SUITES = frozenset({"system", "workload", "repeat", "until-fail", "same-seed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NameOptions:
    """The system and the workload of a run."""

    TOPIC: ClassVar = Topic.LOAD

    system_name: str = option(
        "dledger",
        "The system under test; `labrys systems` lists them.",
        flag="--system",
        kind=PluginName(plugins.SYSTEMS),
        metavar=plugins.METAVAR,
        main=True,
    )
    workload_name: str = option(
        "register",
        "The workload of the clients; `labrys workloads` lists them.",
        flag="--workload",
        kind=PluginName(plugins.WORKLOADS),
        metavar=plugins.METAVAR,
        main=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A chosen system or workload, with its options.

    Attributes:
        group: `plugins.SYSTEMS` or `plugins.WORKLOADS`.
        name: The name on the command line.
        type: The class.
        options: Its options.
    """

    group: str
    name: str
    type: Any
    options: Sequence[click.Option]

    @property
    def label(self) -> str:
        """Returns its name for messages, e.g. `system my-store`."""
        return f"{plugins.SINGULAR[self.group]} {plain_name(self.name)}"


def chosen(group: str, name: str, *, by_place: bool) -> Chosen:
    """Imports a system or a workload.

    Args:
        group: `plugins.SYSTEMS` or `plugins.WORKLOADS`.
        name: Its name.
        by_place: Whether the name may be a place, e.g. MODULE:CLASS.

    Raises:
        InputError: No plug-in has this name, or it cannot be loaded.
    """
    plugin = plugins.find(group, name, by_place=by_place)
    plugin_class = plugin.load()
    singular = plugins.SINGULAR[group]
    lacking = [member for member in ("name", "summary", "Options") if not hasattr(plugin_class, member)]
    if lacking:
        raise InputError(
            f"the {singular} {plain_name(name)} lacks {', '.join(lacking)}; see docs/guide/new-{singular}.md"
        )
    if group == plugins.SYSTEMS and not (isinstance(plugin_class, type) and issubclass(plugin_class, System)):
        raise InputError(
            f"the system {plain_name(name)} is not a subclass of harness.system.System; see docs/guide/new-system.md"
        )
    if group == plugins.SYSTEMS and "workload_options" not in inspect.signature(plugin_class.roles).parameters:
        raise InputError(
            f"the system {plain_name(name)} defines roles without the parameter workload_options; "
            "add `workload_options: Any = None` at its end; see docs/guide/new-system.md"
        )
    try:
        options = click_options(plugin_class.Options)
    except TypeError as error:
        raise InputError(f"the options of the {singular} {plain_name(name)} cannot be used: {error}") from error
    return Chosen(group=group, name=name, type=plugin_class, options=options)


class ChoosingContext(click.Context):
    """The context of a command with chosen options.

    Attributes:
        chosen: The system and the workload.
        left_out: The options of `labrys.toml` that do not apply, because the test is a case of a suite.
    """

    chosen: tuple[Chosen, ...] = ()
    left_out: tuple[str, ...] = ()

    def leave_out(self, table: Mapping[str, Any], without: Callable[[str], bool]) -> dict[str, Any]:
        """Returns a table without some options, and remembers these. The function takes the long name of an option."""
        gone = [key for key in table if without(_flag(key))]
        self.left_out += tuple(_flag(key) for key in gone)
        return {key: value for key, value in table.items() if key not in gone}


class ChoosingCommand(opt.DefaultsCommand):
    """A command with `NameOptions`, and the options of the chosen system and workload.

    Attributes:
        ignored: Long names of options that its table of `labrys.toml` and its variables may have for other commands. They set
            no option of this command.
    """

    context_class = ChoosingContext
    finds_defaults: ClassVar[bool] = True

    def __init__(self, *args: Any, ignored: frozenset[str] = frozenset(), **more: Any) -> None:
        super().__init__(*args, **more)
        self.ignored = ignored

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Returns the command's own options, and those of the system and the workload."""
        return [*super().get_params(ctx), *_options(ctx)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line.

        Raises:
            UsageError: The command line is not valid.
            InputError: The system or the workload cannot be loaded, or `labrys.toml` is not valid.
        """
        assert isinstance(ctx, ChoosingContext)  # noqa: S101 - by `context_class`
        if ctx.resilient_parsing:
            try:
                ctx.chosen = self._choose(ctx, self._given(ctx, args))
            except LabrysError:
                ctx.chosen = ()
            return super().parse_args(ctx, args)
        of_suite = _is_of_suite(args)
        self._find_defaults(ctx, lambda: self._given(ctx, args), of_suite=of_suite)
        try:
            left = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            owner = _owner(error.option_name)
            if owner is None:
                raise
            raise click.UsageError(
                f"{plain_name(error.option_name)} is an option of {owner}, and this is {self._label(ctx)}.", ctx
            ) from None
        self._follow_promise(ctx, of_suite=of_suite)
        return left

    def invoke(self, ctx: click.Context) -> Any:
        """Carries the command out.

        Raises:
            PluginError: The code of the system or of the workload failed.
        """
        with blaming(*(Blamable(choice.type, choice.label) for choice in getattr(ctx, "chosen", ()))):
            return super().invoke(ctx)

    def completed(self, root: click.Context, known: Mapping[str, Any]) -> ChoosingContext:
        """Returns the context of this command with known values, which count as typed. Nothing parses them again.

        All other options have their values from the environment, `labrys.toml`, or their built-in default.

        Args:
            root: The context of the group of all commands.
            known: Values by parameter name, as click converts them.

        Raises:
            UsageError: A value of the environment or of `labrys.toml` is not valid.
            InputError: The system or the workload cannot be loaded, or `labrys.toml` is not valid.
        """
        ctx = ChoosingContext(self, info_name=self.name, parent=root, **self.context_settings)
        with ctx.scope(cleanup=False):
            self._find_defaults(ctx, lambda: known, of_suite=SUITE_CASE in known)
            for parameter in iter_params_for_processing([], self.get_params(ctx)):
                if parameter.name in known:
                    ctx.params[parameter.name] = known[parameter.name]
                    ctx.set_parameter_source(parameter.name, ParameterSource.COMMANDLINE)
                else:
                    parameter.handle_parse_result(ctx, {}, [])
            self._follow_promise(ctx, of_suite=SUITE_CASE in known)
        return ctx

    def _follow_promise(self, ctx: ChoosingContext, *, of_suite: bool) -> None:
        """Gives the options of the workload the values that ask for the promise of the system."""
        if len(ctx.chosen) == 2:
            promised.follow(ctx, *(choice.type for choice in ctx.chosen), of_suite=of_suite)

    def _given(self, ctx: click.Context, args: list[str]) -> Mapping[str, Any]:
        """Returns the values of the command's own options on a command line."""
        parser = self.make_parser(ctx)
        parser.ignore_unknown_options = True
        given, _, _ = parser.parse_args(list(args))
        return given

    def _find_defaults(self, ctx: ChoosingContext, given: Callable[[], Mapping[str, Any]], *, of_suite: bool) -> None:
        """Chooses the system and the workload, and gives all options their defaults from the environment and `labrys.toml`.

        Args:
            ctx: The context of the command.
            given: Returns the given values of its own options, by parameter name.
            of_suite: Whether the test is a case of a suite.

        Raises:
            InputError: The system or the workload cannot be loaded, or `labrys.toml` is not valid.
        """
        source = DEFAULTS_OF.get(str(self.name), str(self.name))
        path, table = opt.table_of(ctx.find_root(), source)
        own = [option for option in self.params if isinstance(option, click.Option)]
        if of_suite:
            table = ctx.leave_out(table, lambda key: key in DECIDED_BY_SUITES)
        self._prepare(ctx, own, source, {key: table[key] for key in table if _flag(key) in _flags(own)}, path)
        ctx.chosen = self._choose(ctx, given())
        every = [*own, *_options(ctx)]
        if of_suite:
            here = _flags(every)
            cluster = table.get(CLUSTER)
            only = next((required for choice in ctx.chosen if (required := getattr(choice.type, "only_on", ""))), None)
            foreign = {CLUSTER} if (cluster if cluster in ALONE else None) != only else set()
            table = ctx.leave_out(table, lambda key: key in foreign or (key not in here and _owner(key) is not None))
        for key in table:
            if _flag(key) not in _flags(every):
                owner = _owner(_flag(key))
                if owner is not None:
                    raise InputError(
                        f"{path}: [{source}] {key} is an option of {owner}, and this is {self._label(ctx)}"
                    )
        self._prepare(ctx, every, source, table, path)
        opt.warn_unread(source, every, elsewhere=lambda flag: flag in self.ignored or _owner(flag) is not None)

    def _prepare(
        self,
        ctx: click.Context,
        options: Sequence[click.Option],
        source: str,
        table: Mapping[str, Any],
        path: Path | None,
    ) -> None:
        """Gives options their defaults from the environment and `labrys.toml`."""
        settable = [parameter for parameter in options if opt.long_name(parameter) not in self.ignored]
        taken = {key: value for key, value in table.items() if _flag(key) not in self.ignored}
        ctx.default_map = opt.give_defaults(settable, source, path, taken)

    def _choose(self, ctx: click.Context, given: Mapping[str, Any]) -> tuple[Chosen, ...]:
        """Imports the system and the workload that the given values, the environment or `labrys.toml` name."""
        choices = []
        for parameter in self.params:
            if parameter.name not in {SYSTEM, WORKLOAD}:
                continue
            value, source = parameter.consume_value(ctx, given)
            value = parameter.type_cast_value(ctx, value)
            if plugins.PLACE_SEPARATOR in value and source is ParameterSource.DEFAULT_MAP:
                raise InputError(
                    f"{ctx.find_root().params.get('config')}: {parameter.opts[0]} {plain_name(value)} is a "
                    f"{plugins.form(value)}; give it on the command line, because labrys never takes a {plugins.form(value)} "
                    "from a file"
                )
            group = plugins.SYSTEMS if parameter.name == SYSTEM else plugins.WORKLOADS
            choices.append(chosen(group, value, by_place=True))
        refuse_shared_options(choices, self.params)
        if len(choices) == 2:
            system, workload = choices
            options = promised.promised_options(system.type, system.type.Options(), workload.type)
            choices[1] = replace(workload, options=options)
        return tuple(choices)

    def _label(self, ctx: click.Context) -> str:
        return "a test of " + " with ".join(f"the {choice.label}" for choice in getattr(ctx, "chosen", ()))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options by topic: first those that most users need, last those of the system and of the workload."""
        of_chosen = {id(option) for option in _options(ctx)}
        served = _served(ctx)
        sections: dict[str, list[tuple[str, str]]] = {MOST_USED: [], **{topic: [] for topic in Topic}}
        for parameter in self.get_params(ctx):
            if id(parameter) in of_chosen or (record := parameter.get_help_record(ctx)) is None:
                continue
            declared = parameter if isinstance(parameter, DeclaredOption) and not parameter.main else None
            heading = (declared.topic if declared else None) or MOST_USED
            sections[heading].append(_workload_record(ctx, record, served) if parameter.name == WORKLOAD else record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
        for choice in _shown(ctx, served):
            own = [record for option in choice.options if (record := option.get_help_record(ctx)) is not None]
            if own:
                with formatter.section(f"Options of the {choice.label}"):
                    formatter.write_dl(own)


def _served(ctx: click.Context) -> tuple[str, ...]:
    """Returns the workloads that the chosen system serves."""
    systems = [choice for choice in getattr(ctx, "chosen", ()) if choice.group == plugins.SYSTEMS]
    return tuple(name for system in systems for name in getattr(system.type, "serves", {}))


def _workload_record(ctx: click.Context, record: tuple[str, str], served: Sequence[str]) -> tuple[str, str]:
    """Returns the help of `--workload` with the workloads that the system serves."""
    if not served:
        return record
    flag = record[0].partition(" ")[0]
    default = ctx.params.get(WORKLOAD) or next(
        option.default for option in ctx.command.params if option.name == WORKLOAD
    )
    text = record[1] if default in served else "The workload of the clients. This system does not serve the default."
    return f"{flag} [{'|'.join(served)}]", text


def _shown(ctx: click.Context, served: Sequence[str]) -> Iterator[Chosen]:
    """Yields the system and the workload whose options the help shows.

    If the system does not serve the default workload, these are all workloads that it serves and that can be loaded.
    """
    for choice in getattr(ctx, "chosen", ()):
        default = ctx.get_parameter_source(WORKLOAD) is not ParameterSource.COMMANDLINE
        if choice.group == plugins.WORKLOADS and choice.name not in served and default:
            others = (other for _, other in installed(plugins.WORKLOADS) if isinstance(other, Chosen))
            yield from (other for other in others if other.type.name in served)
        else:
            yield choice


def refuse_shared_options(choices: Sequence[Chosen], common: Sequence[click.Parameter]) -> None:
    """Refuses an option that two of the system, the workload and the command have.

    Raises:
        InputError: They share an option.
    """
    owners = {parameter.name: "the command itself" for parameter in common}
    for choice in choices:
        for own in choice.options:
            other = owners.setdefault(own.name, f"the {choice.label}")
            if other != f"the {choice.label}":
                raise InputError(
                    f"the {choice.label} and {other} both have an option {own.opts[0]}; rename one of them"
                )


def _options(ctx: click.Context) -> list[click.Option]:
    return [option for choice in getattr(ctx, "chosen", ()) for option in choice.options]


def _is_of_suite(args: Sequence[str]) -> bool:
    """Returns whether a suite gives this command line."""
    flag = f"--{SUITE_CASE.replace('_', '-')}"
    return any(word == flag or word.startswith(f"{flag}=") for word in args)


def _flag(key: str) -> str:
    return key.replace("_", "-")


def _flags(options: Sequence[click.Option]) -> set[str]:
    return {opt.long_name(option) for option in options}


def _owner(flag: str) -> str | None:
    """Returns the installed system or workload that has an option, e.g. `the system my-store`; None if none has it."""
    wanted = flag.lstrip("-").removeprefix("no-")
    for choice in loadable():
        if wanted in _flags(choice.options):
            return f"the {choice.label}"
    return None


def installed(group: str) -> Iterator[tuple[str, Chosen | InputError]]:
    """Yields each installed plug-in of a group by name: the imported plug-in, or the error of its import."""
    for name in plugins.plugins(group):
        try:
            yield name, chosen(group, name, by_place=False)
        except InputError as error:
            yield name, error


def loadable() -> Iterator[Chosen]:
    """Yields all installed systems and workloads that can be loaded."""
    for group in (plugins.SYSTEMS, plugins.WORKLOADS):
        yield from (choice for _, choice in installed(group) if isinstance(choice, Chosen))
