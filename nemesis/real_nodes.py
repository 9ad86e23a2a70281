"""Changes the faults of a simulated run, so that real nodes can have them and prove them.

The simulator begins a fault in no time, and shows the messages between its nodes. On real nodes, Labrys needs up to a second to
begin a fault and to prove its effect, and it sees no message. So a fault lasts a second at least, and does not wait for a
message. Each change comes with a sentence, because the changed run is not quite the simulated one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nemesis.asked import ByKind
from nemesis.rhythm import no_shorter_than
from nemesis.triggers import find_trigger

if TYPE_CHECKING:
    from harness.faults import PlannedFault, Trigger
    from nemesis.choices import FaultOptions
    from nemesis.planfile import Plan

LEAST_S: Final = 1.0
_DECIMALS: Final = 3  # as those of a drawn plan
_TOO_SHORT: Final = f"a fault that lasts less than {LEAST_S:g} s cannot be proved on real nodes"
_UNSEEN: Final = "real nodes do not show their messages"


def changed_options(options: FaultOptions) -> tuple[dict[str, Any], list[str]]:
    """Returns the options about faults that real nodes need, by parameter name, and a sentence for each change.

    Args:
        options: The options of a simulated run that draws its plan.
    """
    changes: dict[str, Any] = {}
    sentences: list[str] = []
    if options.nemesis.none:
        return changes, sentences
    triggers = options.fault_trigger
    kept = ByKind(
        None if triggers.usual is None or _is_simulated(triggers.usual) else triggers.usual,
        {kind: trigger for kind, trigger in triggers.own.items() if not _is_simulated(trigger)},
    )
    gone = [part for part in triggers.parts() if part not in [*kept.parts()]]
    if gone:
        changes["fault_trigger"] = kept
        sentences.append(f"It has no trigger {', '.join(gone)}: {_UNSEEN}.")
    if options.fault_wait and not kept:
        changes["fault_wait"] = 0.0
        if not triggers:
            sentences.append(f"It has no --fault-wait, because {_UNSEEN}.")
    longer = no_shorter_than(options.fault_on, LEAST_S)
    if longer != options.fault_on:
        changes["fault_on"] = longer
        sentences.append(f"It has --fault-on {longer} in place of {options.fault_on}: {_TOO_SHORT}.")
    return changes, sentences


def changed_plan(plan: Plan) -> tuple[Plan, list[str]]:
    """Returns a plan that real nodes can carry out, and a sentence for each kind of change.

    A fault that gets longer moves all faults that begin after its end. So faults that did not overlap still do not.

    Args:
        plan: The plan of a simulated run.
    """
    untriggered, longer = 0, 0
    moves: list[tuple[float, float]] = []  # the old end of a fault, and by how much it gets longer
    faults: list[PlannedFault] = []
    for fault in sorted(plan.faults, key=lambda fault: (fault.start_s, fault.end_s)):
        moved_s = sum(by_s for end_s, by_s in moves if end_s <= fault.start_s)
        trigger = fault.trigger
        if trigger is not None and _is_simulated(trigger):
            untriggered, trigger = untriggered + 1, None
        wait_s = 0.0 if trigger is None else trigger.limit_s
        lasts_s = max(fault.lasts_s, LEAST_S)
        longer += lasts_s > fault.lasts_s
        start_s = fault.start_s + moved_s
        end_s = start_s + wait_s + lasts_s
        moves.append((fault.end_s, max(0.0, end_s - moved_s - fault.end_s)))
        faults.append(replace(fault, trigger=trigger, start_s=round(start_s, _DECIMALS), end_s=round(end_s, _DECIMALS)))
    if not untriggered and not longer:
        return plan, []
    sentences = []
    if untriggered:
        sentences.append(f"{_of(untriggered, faults)} begin at their time and wait for no message, because {_UNSEEN}.")
    if longer:
        sentences.append(f"{_of(longer, faults)} last {LEAST_S:g} s, and later ones begin later: {_TOO_SHORT}.")
    later_s = max((new.end_s - old_s for new, (old_s, _) in zip(faults, moves, strict=True)), default=0.0)
    limit_s = None if plan.time_limit_s is None else round(plan.time_limit_s + max(0.0, later_s), _DECIMALS)
    # The faults keep the order of their numbers: a fault that begins later still does.
    return replace(plan, faults=tuple(sorted(faults, key=lambda fault: fault.id)), time_limit_s=limit_s), sentences


def _is_simulated(trigger: Trigger) -> bool:
    """Returns whether a trigger needs what only simulated nodes show."""
    return find_trigger(trigger.name).condition.ONLY_SIMULATED


def _of(count: int, faults: list[PlannedFault]) -> str:
    return f"{count:,} of {len(faults):,} faults"
