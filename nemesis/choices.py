"""The command line's options about faults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path  # noqa: TC003 - `harness.declare` reads the types
from typing import TYPE_CHECKING, Any, ClassVar, Final

from harness.console import plugins
from harness.console.parameters import Completed, PluginName, Seconds
from harness.declare import Topic, option, with_option
from harness.errors import InputError
from harness.faults import Trigger  # noqa: TC001 - `harness.declare` reads the types
from nemesis.asked import ALL_KINDS, NO_KIND, WITHOUT, ByKind, KindOptions, Quiet, Request, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click


MAX_WAIT_S = 3600.0
DEFAULT_WAIT_S = 10.0  # for a trigger without --fault-wait


class _OwnKinds(PluginName):
    """A place with kinds of faults of the user's own. Its conversion adds them to the kinds of this process."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the place."""
        from nemesis.kinds import use  # noqa: PLC0415 - few commands have such a place

        location = super().convert(value, param, ctx)
        try:
            use(location)
        except InputError as error:
            self.fail(str(error), param, ctx)
        return location


class Parsed(Completed):
    """A text about faults. Its conversion makes the value of it, which the rest of the program has in its place."""

    def __init__(self, parser: str, candidates: Callable[[str], Iterable[str]] | None = None) -> None:
        """Takes the name of a function of `nemesis.parsing`, and what a shell completes."""
        super().__init__(candidates or (lambda _: ()))
        self.parser = parser

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the value of a text; what is none is a value already."""
        if not isinstance(value, str):
            return value
        from nemesis import parsing  # noqa: PLC0415 - `--help` needs no kinds

        try:
            return getattr(parsing, self.parser)(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


def kinds_like(text: str) -> list[str]:
    """Returns the completions of a list of kinds whose last kind is incomplete."""
    from nemesis.kinds import all_called, of_all  # noqa: PLC0415 - only completion needs it

    before, comma, _ = text.rpartition(",")
    without = [f"{WITHOUT}{kind.name}" for kind in of_all() if comma]
    return [f"{before}{comma}{kind}" for kind in (*all_called(), *without, *([] if comma else [ALL_KINDS, NO_KIND]))]


def triggers_like(text: str) -> list[str]:
    """Returns the completions of a list of triggers whose last trigger is incomplete, with its kind of fault or without."""
    from nemesis.triggers import SEPARATOR, all_triggers  # noqa: PLC0415 - only completion needs it

    before, comma, last = text.rpartition(",")
    kind, equals, _ = last.rpartition("=")
    names = [f"{name}{SEPARATOR if trigger.condition.OPTIONS else ''}" for name, trigger in all_triggers().items()]
    return [f"{before}{comma}{kind}{equals}{trigger}" for trigger in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOptions:
    """The faults of a run."""

    TOPIC: ClassVar = Topic.FAULTS

    nemesis: Request = option(
        Request(),
        "The kinds of faults, e.g. kill,pause:leader,kill:broker+minority; `labrys faults` lists them. "
        "`all` is every kind that heals and that the nodes support; all,-crash leaves one out.  [default: none]",
        kind=Parsed("request_of", kinds_like),
        shown=False,
        metavar="KIND[:TARGET],...",
        main=True,
    )
    fault: str | None = option(
        None,
        "A kind of fault of your own, or a list of kinds; --nemesis, --among and plans then know their names.",
        kind=_OwnKinds(plugins.FAULTS),
        metavar=f"{plugins.IN_MODULE}|{plugins.IN_FILE}",
        early=True,
    )
    fault_on: ByKind[Span] = option(
        ByKind(Span(6.0, 15.0)),
        "The duration of a fault in seconds; a kind can have its own range, e.g. 6-15,pause=0.2-2.",
        kind=Parsed("spans_of"),
        metavar="SECONDS,...",
        main=True,
    )
    fault_off: ByKind[Span] = option(
        ByKind(Span(4.0, 12.0)),
        "The seconds between two faults, in the same form.",
        kind=Parsed("spans_of"),
        metavar="SECONDS,...",
        main=True,
    )
    fault_quiet: Quiet = option(
        Quiet(5.0, 10.0),
        "The seconds without faults at the start and at the end of the workload.",
        kind=Parsed("quiet_of"),
        metavar="BEFORE-AFTER",
        main=True,
    )
    fault_wait: float = option(
        0.0,
        "The longest time in seconds for which each fault waits for its trigger. Without --fault-trigger, in the "
        "simulator: for a rare message between nodes, e.g. a vote; it begins with the message, or after this time. 0: no wait, "
        f"or {DEFAULT_WAIT_S:g} s with --fault-trigger.",
        kind=Seconds(0, MAX_WAIT_S),
    )
    fault_trigger: ByKind[Trigger] = option(
        ByKind(),
        "The conditions with which faults begin, e.g. log-line:elected, or kill=log-line:snapshot,pause=new-leader. The "
        "target `trigger` is the node that fired it: --nemesis kill:trigger. `labrys faults` lists triggers.  [default: none]",
        kind=Parsed("triggers_of", triggers_like),
        shown=False,
        metavar="[KIND=]TRIGGER[:VALUE],...",
        main=True,
    )
    fault_options: KindOptions = option(
        KindOptions(),
        "Options of kinds, e.g. packet-loss.probability=0.5,partition-leader.side=alone; `labrys faults KIND` lists them.",
        kind=Parsed("options_of"),
        shown=False,
        metavar="KIND.OPTION=VALUE,...",
    )
    in_turn: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Inject one fault of each kind, one after the other.",
        shown=False,
    )
    keep_majority: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Leave a majority of the nodes working at all times.",
        shown=False,
    )
    take_majority: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Hit a majority of the nodes with each fault.",
        shown=False,
    )
    plan_file: Path | None = option(
        None,
        "Run the faults of this plan.json, with its seed and time limit, instead of drawing faults.",
        flag="--plan",
        main=True,
    )


FAULT_OPTION = with_option(FaultOptions, "fault")
PLAN_FILE: Final = "plan_file"
# The options for drawing a plan. They have no effect with a plan from a file.
DRAWING: Final = frozenset(field.name for field in fields(FaultOptions)) - {PLAN_FILE, "fault"}
