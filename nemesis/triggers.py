"""The conditions with which faults can begin, by name.

A condition is a class of `Condition`, and a `TriggerKind` gives it a name. Trigger kinds come by entry points of the group
`labrys.triggers`; those of Labrys are in `nemesis.builtin`. An unknown name is an error with a suggestion. Labrys refuses a
trigger that the nodes or the system do not support before the run starts the system.
"""

from __future__ import annotations

import abc
import asyncio
import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.console import plugins
from harness.console.documents import shown
from harness.console.suggest import did_you_mean
from harness.faults import Trigger
from harness.targets import AtTrigger
from nemesis.errors import PlanError
from nemesis.options import settle
from nemesis.targets import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import Fired, PlannedFault, Sight
    from harness.op import Value
    from harness.traits import LogLine
    from harness.world import World
    from nemesis.field import Field
    from nemesis.options import Option
    from nemesis.targets import Target


SEPARATOR = ":"
PAGE = "docs/guide/new-trigger.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a run tests, as far as triggers depend on it.

    Attributes:
        system: The name of the system.
        log_lines: The lines of its logs that it names; see `harness.system.System`.
        workload: The name of the workload.
        functions: The functions of its operations.
        reports: Whether the service of the clients reports a status, if that is known.
    """

    system: str
    log_lines: Mapping[str, LogLine]
    workload: str
    functions: Sequence[str]
    reports: bool = True


class Condition(abc.ABC):
    """A condition of one planned fault, from the planned start of the fault until it fires or its limit is over.

    Attributes:
        SUMMARY: One line for `labrys faults`.
        OPTIONS: The parameters, in the order of the command line. One without a default must be given.
        ALWAYS: Whether it also fires at its limit; then `fires` keeps to the limit itself.
        NAMES_NODE: Whether it always names a node in `Fired`, for the target `trigger`.
        ONLY_SIMULATED: Whether it needs what only simulated nodes show.
        ON_SWITCH: Whether it needs the switch between real nodes.
        trigger: The trigger in the plan.
        targets: The possible targets of the fault, in order.
        role: The role of the targeted processes; None: whole nodes.
        field: The nodes and the system.
        world: The simulated world; None on real nodes.
        sight: The clock, the events and the polls of the run.
    """

    SUMMARY: ClassVar[str]
    OPTIONS: ClassVar[Mapping[str, Option]] = {}
    ALWAYS: ClassVar[bool] = False
    NAMES_NODE: ClassVar[bool] = False
    ONLY_SIMULATED: ClassVar[bool] = False
    ON_SWITCH: ClassVar[bool] = False

    def __init__(
        self,
        *,
        trigger: Trigger,
        targets: Sequence[str],
        role: str | None,
        field: Field,
        world: World | None,
        sight: Sight,
    ) -> None:
        self.trigger = trigger
        self.targets = tuple(targets)
        self.role = role
        self.field = field
        self.world = world
        self.sight = sight

    @classmethod
    def lacks(cls, node: str, can: Capabilities) -> str | None:  # noqa: ARG003
        """Returns a sentence about what a node lacks for this condition; None if it lacks nothing."""
        return None

    @classmethod
    def after_start(cls, trigger: Trigger) -> bool:  # noqa: ARG003 - most do not
        """Returns whether it fires only after a start of its node, so after the end of a fault that killed it."""
        return False

    @classmethod
    def check(cls, trigger: Trigger, subject: Subject) -> None:  # noqa: ARG003
        """Checks the parameters against what the run tests, before it opens a cluster.

        Raises:
            PlanError: The system or the workload does not have what a parameter names. The message has a suggestion.
        """
        return

    @classmethod
    def drawn(cls, subject: Subject) -> Sequence[Mapping[str, Value]]:  # noqa: ARG003 - few depend on it
        """Returns the parameters that the runs of a hunt draw from. The default: the defaults, if each parameter has one."""
        return [{}] if all(option.default is not None for option in cls.OPTIONS.values()) else []

    @classmethod
    def prepare(cls, trigger: Trigger, field: Field, world: World | None) -> None:  # noqa: ARG003 - most need nothing
        """Prepares a run with such a trigger. Called after the installation, before the system starts.

        Raises:
            InputError: The system does not support the trigger.
        """
        return

    async def wait(self) -> Fired | None:
        """Waits until the condition fires, at most for the trigger's limit. Returns None if it did not fire."""
        if self.ALWAYS:
            return await self.fires()
        try:
            async with asyncio.timeout(self.trigger.limit_s):
                return await self.fires()
        except TimeoutError:
            return None

    @abc.abstractmethod
    async def fires(self) -> Fired:
        """Waits until the condition holds, and returns what fired it. `wait` cancels it after the trigger's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerKind:
    """A kind of trigger.

    Attributes:
        name: Its name in plans and reports, and on the command line.
        condition: The class of its conditions.
    """

    name: str
    condition: type[Condition]


@functools.cache
def registry() -> plugins.Collection[TriggerKind]:
    """Loads the trigger kinds of all installed packages."""
    return plugins.collect(plugins.TRIGGERS, TriggerKind, page=PAGE)


def all_triggers() -> Mapping[str, TriggerKind]:
    """Returns the trigger kinds by name, those of Labrys first."""
    by_name: dict[str, TriggerKind] = {}
    for _, kind in registry().found:
        by_name.setdefault(kind.name, kind)
    return by_name


def find_trigger(name: str) -> TriggerKind:
    """Returns a trigger kind by its name.

    Raises:
        PlanError: There is no such kind, or several packages have one.
    """
    owners = [(package, kind) for package, kind in registry().found if kind.name == name]
    if len(owners) > 1:
        packages = ", ".join(package for package, _ in owners)
        raise PlanError(f"several packages have a trigger named {shown(name)}: {packages}; uninstall all but one")
    if not owners:
        broken = "".join(f" Also, {sentence}." for sentence in registry().broken.values())
        raise PlanError(f"unknown trigger {shown(name)}. {did_you_mean(name, list(all_triggers()))}{broken}")
    return owners[0][1]


def make_trigger(name: str, limit_s: float, parameters: Mapping[str, Value] | None = None) -> Trigger:
    """Returns a trigger with checked parameters, and the defaults of the others.

    Raises:
        PlanError: There is no such trigger, or a parameter is unknown, not accepted, or missing.
    """
    known = find_trigger(name).condition.OPTIONS
    settled = settle(f"the trigger {name}", known, parameters or {})
    for option, about in known.items():
        if option not in settled and about.needed:
            raise PlanError(f"the trigger {name} needs {option!r}, {about.expected}: {about.meaning}")
    return Trigger(
        name=name, limit_s=limit_s, parameters={option: settled[option] for option in known if option in settled}
    )


def parse_trigger(text: str, limit_s: float) -> Trigger:
    """Parses a trigger in the form of the command line: `NAME`, or `NAME:VALUE` with the values of its parameters in order.

    A value is JSON, or a text if it is not JSON.

    Raises:
        PlanError: There is no such trigger, or a value is not accepted, missing, or one too many.
    """
    name, *values = (part.strip() for part in text.split(SEPARATOR))
    known = find_trigger(name).condition.OPTIONS
    if len(values) > len(known):
        form = SEPARATOR.join([name, *(option.upper() for option in known)])
        raise PlanError(f"the trigger {shown(text)} has a value too many; its form is {form}")
    return make_trigger(name, limit_s, dict(zip(known, map(_value, values), strict=False)))


def for_hunts(text: str, subject: Subject, capabilities: Mapping[str, Capabilities]) -> tuple[Trigger, ...]:
    """Returns the triggers that the runs of a hunt draw from. Their limits are 0.

    Args:
        text: Triggers in the form of the command line, with commas between them. `all` means each trigger that these nodes
            support, and a name without values the trigger with each value that suits what the runs test.
        subject: What the runs test.
        capabilities: The capabilities of the nodes.

    Raises:
        PlanError: A trigger is not valid, cannot fire here, or there is none.
    """
    by_text: dict[str, Trigger] = {}
    for part in (part.strip() for part in text.split(",") if part.strip()):
        names = list(all_triggers()) if part == str(ALL) else [part]
        for name in names:
            drawn = [] if SEPARATOR in name else find_trigger(name).condition.drawn(subject)
            triggers = [make_trigger(name, 0.0, parameters) for parameters in drawn]
            if part != str(ALL):
                triggers = triggers or [parse_trigger(name, 0.0)]
                condition = find_trigger(triggers[0].name).condition
                for trigger in triggers:
                    condition.check(trigger, subject)
                if lacks := _lacks(condition, capabilities):
                    raise PlanError(lacks[0])
            elif _lacks(find_trigger(name).condition, capabilities):
                continue
            by_text |= {str(trigger): trigger for trigger in triggers}
    if not by_text:
        raise PlanError("the runs have no trigger to draw from; `labrys faults` lists triggers")
    return tuple(by_text.values())


def _value(text: str) -> Value:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def check_target(kind: str, target: Target, trigger: Trigger | None) -> None:
    """Refuses a fault at the node of its trigger if no trigger names one.

    Raises:
        PlanError: The fault has no trigger, or one without a node.
    """
    if not isinstance(target, AtTrigger):
        return
    if trigger is None:
        raise PlanError(
            f"{kind} at the target '{target}' needs a trigger that names a node, e.g. --fault-trigger new-leader; "
            "`labrys faults` lists triggers"
        )
    if not find_trigger(trigger.name).condition.NAMES_NODE:
        able = [name for name, candidate in all_triggers().items() if candidate.condition.NAMES_NODE]
        raise PlanError(
            f"{kind} at the target '{target}' needs a trigger that names a node, and {trigger.name} names none. "
            f"Triggers that do: {', '.join(able)}."
        )


def lacking(faults: Iterable[PlannedFault], capabilities: Mapping[str, Capabilities]) -> list[str]:
    """Returns a sentence for each node that lacks something for a trigger of these faults."""
    names = dict.fromkeys(fault.trigger.name for fault in faults if fault.trigger is not None)
    return [sentence for name in names for sentence in _lacks(find_trigger(name).condition, capabilities)]


def _lacks(condition: type[Condition], capabilities: Mapping[str, Capabilities]) -> list[str]:
    missing = [condition.lacks(node, can) for node, can in capabilities.items()]
    return [sentence for sentence in missing if sentence is not None]
