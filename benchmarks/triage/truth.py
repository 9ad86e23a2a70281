"""The defect of a run of a build with several, by experiments that are apart from those of `labrys triage`.

A defect is the cause of a run if both hold: a build with this defect alone shows the violation, with the same seed, and the
build of the run with this defect repaired does not. If two defects are causes, or none is, then the truth is not known, and the
run does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commands.run.trial import attempt
from commands.triage.experiments import shows
from harness.errors import LabrysError
from harness.option_values import repairs

if TYPE_CHECKING:
    from commands.options.compose import Settled
    from results.causes.cases import Case

AGAIN: Final = "the run again does not show it"
NONE: Final = "no defect alone shows it and cures it"
SEVERAL: Final = "several defects do"


def truth_of(settled: Settled, case: Case) -> tuple[str, int]:
    """Returns the defect of a run, or why it is not known, and the number of runs that it took."""
    names = list(_repairs(settled))
    if not _shows(settled, case):
        return AGAIN, 1
    alone = [name for name in names if _shows(_having_only(settled, name), case)]
    causes = [name for name in alone if not _shows(settled.having(_repairs(settled)[name]), case)]
    runs = 1 + len(names) + len(alone)
    return causes[0] if len(causes) == 1 else SEVERAL if causes else NONE, runs


def is_known(truth: str) -> bool:
    """Returns whether a truth names a defect."""
    return truth not in {AGAIN, NONE, SEVERAL}


def _repairs(settled: Settled) -> dict[str, dict[str, object]]:
    return repairs(settled.options.system.type.Options, settled.options.values())


def _having_only(settled: Settled, defect: str) -> Settled:
    """Returns the options of a build with one defect."""
    while others := [name for name in _repairs(settled) if name != defect]:
        settled = settled.having(_repairs(settled)[others[0]])
    return settled


def _shows(settled: Settled, case: Case) -> bool:
    try:
        return shows(attempt(settled).outcome, case)
    except LabrysError:
        return False
