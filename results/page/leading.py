"""The leaders of services and groups on a page.

A system can have a group for each of many objects, e.g. for each ledger. Then one line tells of all groups of a service.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from harness.console.plain import counted
from results.words.formatting import elections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_GROUPS: Final = 3  # of a service, each with a line of its own


def crowded(names: Iterable[str]) -> dict[str, Sequence[str]]:
    """Returns the groups of each service with more than `MOST_GROUPS`.

    Args:
        names: The names of services and groups as `harness.watch.Watch` makes them: a role, or a role and a group.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        role, _, group = name.partition(" ")
        if group:
            groups[role].append(name)
    return {role: members for role, members in groups.items() if len(members) > MOST_GROUPS}


def led(services: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the name, the text about leaders, and the rivals of each service and group that had a leader.

    Args:
        services: `other_leaders` of `results.json`.
    """
    known = {name: service for name, service in services.items() if service["leadership"]["leaders"]}
    many = crowded(known)
    together = {name for names in many.values() for name in names}
    rows = [
        {"name": name, "text": elections(service["leadership"]), "rivals": service["rival_leaders"]}
        for name, service in known.items()
        if name not in together
    ]
    for role, names in many.items():
        changes = [known[name]["leadership"]["changes"] for name in names]
        changed = sum(change > 0 for change in changes)
        text = (
            f"{counted(sum(changes), 'change')} of leader in {counted(changed, 'group')}"
            if changed
            else "no change of leader"
        )
        rivals = [rival for name in names for rival in known[name]["rival_leaders"]]
        rows.append({"name": f"{len(names)} groups of {role}", "text": text, "rivals": rivals})
    return rows
