"""The options of a run: one frozen value, made once from a command line, a record, or the draw of a hunt.

Each room declares its own part (`harness.declare`), and `RunOptions` puts the parts together. The options of `labrys test`, its
reproduce line, and the options in `test.json` follow from the declarations.
"""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from clusters.options import ClusterOptions, PlaceOptions
from commands.options.choosing import SYSTEM, WORKLOAD, NameOptions, chosen
from commands.options.promised import PromiseOptions, promised_options
from commands.options.suite_case import SuiteCaseType
from harness.blame import Blamable, blaming
from harness.console import plugins
from harness.console import sources as opt
from harness.console.choices import LoadOptions
from harness.console.parameters import Choice, ThresholdText, Whole, folder
from harness.console.plain import name as plain_name
from harness.declare import Topic, click_options, option
from harness.option_values import build
from harness.suites.expectation import SuiteCase  # noqa: TC001 - `harness.declare` reads the types
from harness.system import System
from nemesis.choices import DRAWING, PLAN_FILE, FaultOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import click

    from harness.console.sources import Origin
    from harness.op import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdOptions:
    """The limits for numbers of a run. They determine no operation and no fault, but the outcome."""

    TOPIC: ClassVar = Topic.END

    threshold: tuple[str, ...] = option(
        (),
        "A limit for a number of the run, e.g. 'p99_ms < 200' or 'read.p99_ms < 50'; can be repeated. docs/guide/suites.md "
        "lists the numbers.",
        kind=ThresholdText(),
        multiple=True,
        shown=False,
        metavar="LIMIT",
        main=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """The output of a run. It determines no run."""

    TOPIC: ClassVar = Topic.OUTPUT

    test_name: str | None = option(
        None,
        "The name of the test, and of its folder in the store.  [default: system, workload and faults]",
        flag="--name",
        main=True,
    )
    store_dir: Path = option(Path("store"), "The folder with all runs.", flag="--store", kind=folder(), main=True)
    edn: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Also write history.edn and results.edn, as Jepsen does.",
        flag="--edn",
    )
    calls: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "With --cluster sim and programs: also write calls.log, with each call of the programs; see `labrys calls`.",
        flag="--calls",
    )
    output: str = option(
        "text",
        "Format of standard output; github writes annotations for GitHub Actions.",
        flag="--format",
        kind=Choice(["text", "json", "github"]),
        main=True,
    )
    suite_case: SuiteCase | None = option(None, None, kind=SuiteCaseType(), hidden=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatOptions:
    """How often a test runs. A single run does not depend on them."""

    TOPIC: ClassVar = Topic.LOAD

    repeat: int = option(
        1,
        "The number of runs. The first run has --seed; Labrys draws the other seeds from it.",
        kind=Whole(1, 100_000),
        main=True,
    )
    until_fail: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "With --repeat: stop after the first invalid run.",
        flag="--until-fail",
        main=True,
    )
    same_seed: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "With --repeat, on real nodes: all runs have --seed. With programs in virtual time: the runs must do the same.",
        flag="--same-seed",
    )


def _names(*parts: type) -> frozenset[str]:
    return frozenset(member.name for part in parts for member in fields(part))


def flags_of(*parts: type) -> frozenset[str]:
    """Returns the long names of the options of some parts."""
    return frozenset(opt.long_name(parameter) for part in parts for parameter in click_options(part))


# The options that determine a run, in the order of `--help` and of the reproduce line. Those of system and workload follow.
RUN: Final = (ClusterOptions, NameOptions, PromiseOptions, FaultOptions, LoadOptions)
OUTPUT: Final = (PlaceOptions, OutputOptions)
NOT_REPRODUCED: Final = _names(*OUTPUT, RepeatOptions) | {"seed"}
# A replay never takes these options from the replayed run, because its folder may come from anyone.
PLACES: Final = (NOT_REPRODUCED - {"seed"}) | {"inventory", "fault", PLAN_FILE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """The system or the workload of a run.

    Attributes:
        name: The name on the command line.
        type: The class.
        options: Its options, an object of `type.Options`.
    """

    name: str
    type: Any
    options: Any

    @classmethod
    def of(cls, group: str, name: str, values: Mapping[str, Any]) -> Picked:
        """Loads a plug-in, and makes its options.

        Args:
            group: `plugins.SYSTEMS` or `plugins.WORKLOADS`.
            name: Its name.
            values: Values by parameter name; others than those of its options are ignored.

        Raises:
            InputError: It cannot be loaded, or refuses the values together.
        """
        plugin_class = chosen(group, name, by_place=True).type
        return cls(name=name, type=plugin_class, options=build(plugin_class.Options, values))

    @property
    def plugin(self) -> Blamable:
        """Returns it with its name for messages, e.g. `system my-store`."""
        is_system = isinstance(self.type, type) and issubclass(self.type, System)
        group = plugins.SYSTEMS if is_system else plugins.WORKLOADS
        return Blamable(self.type, f"{plugins.SINGULAR[group]} {plain_name(self.name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Attributes:
        cluster: Where it runs.
        system: The system under test.
        workload: The workload of the clients.
        faults: The faults.
        load: The load, the time limits and the seed.
        promise: Whether the options of the workload follow the promise of the system.
        limits: The thresholds.
        place: Which cluster it uses.
        output: Its output.
    """

    cluster: ClusterOptions
    system: Picked
    workload: Picked
    faults: FaultOptions
    load: LoadOptions
    promise: PromiseOptions = field(default_factory=PromiseOptions)
    limits: ThresholdOptions = field(default_factory=ThresholdOptions)
    place: PlaceOptions = field(default_factory=PlaceOptions)
    output: OutputOptions = field(default_factory=OutputOptions)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RunOptions:
        """Makes the options from values by parameter name, as click has converted them; missing ones have their defaults.

        Raises:
            InputError: The system or the workload cannot be loaded, or refuses the values together.
        """
        return cls(
            cluster=build(ClusterOptions, values),
            system=Picked.of(plugins.SYSTEMS, values[SYSTEM], values),
            workload=Picked.of(plugins.WORKLOADS, values[WORKLOAD], values),
            faults=build(FaultOptions, values),
            load=build(LoadOptions, values),
            promise=build(PromiseOptions, values),
            limits=build(ThresholdOptions, values),
            place=build(PlaceOptions, values),
            output=build(OutputOptions, values),
        )

    def values(self) -> dict[str, Any]:
        """Returns the values by parameter name, in the types of the command line."""
        values: dict[str, Any] = {SYSTEM: self.system.name, WORKLOAD: self.workload.name}
        parts = (self.cluster, self.promise, self.faults, self.load, self.limits, self.place, self.output)
        for part in (*parts, self.system.options, self.workload.options):
            values |= {member.name: getattr(part, member.name) for member in fields(part)}
        return {name: str(value) if isinstance(value, Enum) else value for name, value in values.items()}

    def having(self, changes: Mapping[str, Any]) -> RunOptions:
        """Returns the options with other values, by parameter name. The system and the workload stay.

        Raises:
            InputError: The system or the workload refuses the values together.
            TypeError: A name is no option of this run, which is a bug of the caller.
        """
        left, parts = dict(changes), dict[str, Any]()
        for member in fields(self):
            part = getattr(self, member.name)
            options = part.options if isinstance(part, Picked) else part
            own = {name.name: left.pop(name.name) for name in fields(options) if name.name in left}
            if own:
                now = {name.name: getattr(options, name.name) for name in fields(options)}
                made = build(type(options), {**now, **own})
                parts[member.name] = replace(part, options=made) if isinstance(part, Picked) else made
        if left:
            raise TypeError(f"expected options of a run, found {', '.join(left)}")
        return replace(self, **parts)

    @contextlib.contextmanager
    def blaming(self) -> Iterator[None]:
        """Raises an exception from the code of the system or of the workload as `PluginError`; see `harness.blame`."""
        with blaming(self.system.plugin, self.workload.plugin):
            yield

    def seeded(self, seed: int) -> RunOptions:
        """Returns the options with a seed."""
        return replace(self, load=replace(self.load, seed=seed))

    @property
    def seed(self) -> int:
        """Returns the seed of settled options, which have one."""
        assert self.load.seed is not None  # noqa: S101 - `settle` draws one
        return self.load.seed

    def click_options(self) -> list[click.Option]:
        """Returns the options of `labrys test` that give these values, in its order."""
        parts = (*RUN, ThresholdOptions, *OUTPUT, self.system.type.Options)
        common = [parameter for part in parts for parameter in click_options(part)]
        if not self.promise.promises:
            return [*common, *click_options(self.workload.type.Options)]
        return [*common, *promised_options(self.system.type, self.system.options, self.workload.type)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the values of options come from.

    Attributes:
        origins: The sources of values that are not built-in defaults, by parameter name.
        elsewhere: The parameters that the environment or `labrys.toml` sets for `labrys test`. The reproduce line has them with
            any value, so that it has the same meaning without these.
        defaults: The options that `labrys.toml` decides, as `harness.console.sources.from_file` returns them.
    """

    origins: Mapping[str, Origin]
    elsewhere: frozenset[str]
    defaults: Mapping[str, Value] | None

    @classmethod
    def of(cls, ctx: click.Context) -> Sources:
        """Returns the sources of the values of a command with the options of a run."""
        return cls(
            origins=opt.origins(ctx),
            elsewhere=frozenset(
                str(parameter.name)
                for parameter in opt.options_of(ctx.command, ctx)
                if parameter.resolve_envvar_value(ctx) is not None or parameter.name in (ctx.default_map or {})
            ),
            defaults=opt.from_file(ctx),
        )


def reproduce_line(options: RunOptions, sources: Sources) -> str:
    """Returns the command that runs the same test again. All options must be settled."""
    words = reproduce_words(options, sources)
    return shlex.join(["labrys", "test", "--seed", str(options.seed), *words])


def reproduce_words(options: RunOptions, sources: Sources, *, without: Collection[str] = ()) -> list[str]:
    """Returns the words of the reproduce line after the seed: the options whose values differ from the built-in defaults.

    Args:
        options: The settled options.
        sources: Where their values come from.
        without: Further parameters to leave out.
    """
    planned = options.faults.plan_file is not None
    left_out = {*NOT_REPRODUCED, *(DRAWING if planned else ()), *without}
    always = {*sources.elsewhere, *({"time_limit"} if planned else ())}
    values = options.values()
    return opt.spelled_out(
        (
            parameter
            for parameter in options.click_options()
            if parameter.name not in left_out
            and (parameter.name in always or values[str(parameter.name)] != parameter.default)
        ),
        values,
    )
