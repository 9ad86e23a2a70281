"""Hunts in one process, run after run: the runs of `labrys hunt` of a simulated system, for tests and benchmarks.

The hunt's words and root seed determine the runs, as on the command line: the same chooser draws them, and
`commands.run.trial.attempt` carries them out and checks them.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cli
from commands.hunt.command import hunt
from commands.hunt.draws import Chooser, behaviour_of
from commands.hunt.space import HuntOptions, prepare
from commands.options.choosing import SIMULATED_SYSTEM
from commands.options.run_options import RunOptions
from commands.run.trial import attempt
from harness.console import sources as opt
from harness.console.plain import listed
from harness.errors import InputError
from harness.verdict import Verdict
from nemesis.parsing import request_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

    from clusters.sim.planted import Planted
    from commands.hunt.draws import Draw, Space
    from commands.run.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """The first run of a hunt with an invalid verdict.

    Attributes:
        runs: The number of the run, from 1.
        draw: The drawn options of the run.
        parts: The invalid parts of the verdict.
        size: The number of operations in the smallest counterexample; None if there is none.
    """

    runs: int
    draw: Draw
    parts: tuple[str, ...]
    size: int | None


class Hunt:
    """A hunt of a simulated system, from its root seed.

    Attributes:
        shared: The options that its runs share.
        space: What its runs draw from.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        *,
        seed: int,
        guided: bool = True,
        among: str | None = None,
        triggers: str | None = None,
        system: str = SIMULATED_SYSTEM,
    ) -> None:
        """Prepares the hunt.

        Args:
            words: Options of the system and of the run, in addition to the defaults of `labrys hunt`.
            seed: The root seed.
            guided: Whether new behaviour guides the choice of runs.
            among: The kinds of faults to draw from, in the form of `--among`.
            triggers: The triggers to draw from, in the form of `--triggers`.
            system: The system.
        """
        self.shared, self.space = _prepared(("--system", system, *words), among, triggers)
        self._options_of = self.shared.simulated()
        self._chooser = Chooser(self.space, seed=seed, guided=guided)

    @classmethod
    def of(
        cls, bug: StrEnum, *, seed: int, guided: bool = True, among: str | None = None, triggers: str | None = None
    ) -> Hunt:
        """Returns the hunt for a planted bug of the default system."""
        return cls(("--bug", str(bug)), seed=seed, guided=guided, among=among, triggers=triggers)

    def next(self) -> tuple[Draw, Trial | None]:
        """Carries out the next run; None if its faults do not fit into the plan."""
        draw = self._chooser.draw()
        trial = self.carried_out(draw)
        if trial is not None:
            self._chooser.learn(draw, behaviour_of(trial.result, trial.operations))
        return draw, trial

    def carried_out(self, draw: Draw) -> Trial | None:
        """Carries out one drawn run."""
        settled, own = self._options_of(draw)
        try:
            return attempt(settled.having(own))
        except InputError:
            return None

    def nth(self, number: int) -> Trial | None:
        """Carries out only the n-th run from here. In a guided hunt, this run differs from the one after the earlier runs."""
        for _ in range(number - 1):
            self._chooser.draw()
        return self.carried_out(self._chooser.draw())

    def first(self, most: int) -> Find | None:
        """Carries out runs until one is invalid, at most `most` runs."""
        for number in range(1, most + 1):
            draw, trial = self.next()
            if trial is not None and trial.outcome.invalid:
                return found(number, draw, trial)
        return None


def found(runs: int, draw: Draw, trial: Trial) -> Find:
    """Returns the finding of a run."""
    sizes = [len(example.operations) for part in trial.outcome.parts for example in part.counterexamples]
    return Find(runs=runs, draw=draw, parts=trial.outcome.invalid, size=min(sizes, default=None))


def caught(hunt: Hunt, run: int) -> Trial:
    """Carries out the n-th run of a hunt, and asserts that it is invalid, with a reason for each invalid part."""
    trial = hunt.nth(run)
    assert trial is not None
    assert trial.outcome.invalid
    assert all(part.reason for part in trial.outcome.parts if part.verdict is Verdict.INVALID)
    return trial


def unaccused(hunt: Hunt, runs: int) -> Counter[str]:
    """Carries out the next runs of a hunt, and asserts that none is invalid. Returns the verdicts with their numbers.

    A run whose faults do not fit into its plan counts as `refused`.
    """
    verdicts = Counter[str]()
    for _ in range(runs):
        draw, trial = hunt.next()
        verdicts[str(trial.outcome.verdict) if trial is not None else "refused"] += 1
        assert trial is None or trial.outcome.invalid == (), draw
    return verdicts


def rows_of(page: str, header: str) -> set[tuple[str, ...]]:
    """Returns the rows of a table of a page, as texts without marks of code.

    Args:
        page: The text of the page.
        header: The first line of the table.
    """
    _, title, table = page.partition(header)
    assert title, header
    cells = header.count("|")
    rows = [line.split("|") for line in table.split("\n\n")[0].splitlines() if line.startswith("| `")]
    return {tuple(cell.strip(" `") for cell in row[1:cells]) for row in rows}


def assert_page(page: str, table: Mapping[Any, Planted], finds: Mapping[str, tuple[int, str]]) -> None:
    """Asserts that a page has one row for each planted bug, and exactly these finds.

    Args:
        page: The text of the page.
        table: The planted bugs.
        finds: For the options of a hunt, its first run that is invalid, and the kinds of faults.
    """
    rows = page.splitlines()
    for bug, planted in table.items():
        assert row_of(bug, planted) in rows
    told = rows_of(page, "| options | run | `--among` |")
    assert told == {(options, str(run), among) for options, (run, among) in finds.items()}


def row_of(bug: StrEnum, planted: Planted) -> str:
    """Returns the row of a planted bug in the table of its page."""
    return f"| `{bug}` | {planted.does} | {planted.seen} | {needs(planted)} |"


def needs(planted: Planted) -> str:
    """Returns what a bug needs, in the form of the pages that describe planted bugs."""
    own = planted.needs
    told = [
        f"`--{name.replace('_', '-')}` {listed([f'`{fit}`' for fit in sorted(map(str, fits))], 'or')}"
        for name, fits in own.options.items()
    ]
    told += [f"`--{name.replace('_', '-')}` {least} or more" for name, least in own.at_least.items()]
    told += [f"`--workload` {listed([f'`{workload}`' for workload in own.workloads], 'or')}"] if own.workloads else []
    told += [f"a fault: {listed([f'`{fault}`' for fault in own.faults], 'or')}"] if own.faults else []
    return "; ".join(told)


@functools.cache
def _prepared(words: tuple[str, ...], among: str | None, triggers: str | None) -> tuple[HuntOptions, Space]:
    """Returns the options that a hunt's runs share, and what the runs draw from."""
    given = ["--seed", "1", *words]
    with cli.labrys.make_context("labrys", ["hunt"]) as root, hunt.make_context("hunt", given, parent=root) as own:
        options = HuntOptions.of(root, RunOptions.of(own.params), opt.origins(own))
        shared, space, _ = prepare(options, None if among is None else request_of(among), triggers)
        return shared, space
