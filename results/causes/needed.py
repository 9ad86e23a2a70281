"""The runs of stores that people still need for their causes: the smallest of each, and all of those that are open."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from results.causes.grouping import grouped
from results.causes.known import read_known
from results.causes.reading import read_stores
from results.causes.standing import causes_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SMALLEST: Final = "the smallest run of its cause"


def needed(stores: Sequence[Path], known: Path) -> dict[Path, str]:
    """Returns the resolved folders of the runs that people need, each with the reason.

    A cause is open unless it is gone. Symptoms alone decide, without experiments.

    Args:
        stores: The stores.
        known: The folder of known causes.

    Raises:
        InputError: A known cause is malformed.
    """
    seen = read_stores(stores)
    groups = grouped(seen.cases)
    states = {cause.name: cause.state for cause in causes_of(seen, groups, read_known(known), datetime.now(UTC).date())}
    why: dict[Path, str] = {}
    for group in groups:
        for number, case in enumerate(group.cases):
            run = case.trial.run
            if run is not None and (number == 0 or states[group.name] != "gone"):
                why[run.path.resolve()] = SMALLEST if number == 0 else f"of a cause that is {states[group.name]}"
    return why
