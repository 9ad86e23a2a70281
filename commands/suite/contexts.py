"""The cases of a suite as tests: checks the command line of each case before the first one runs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from commands.options import choosing
from commands.options.compose import fitted
from commands.options.run_options import RepeatOptions, RunOptions, Sources, flags_of
from commands.options.suite_case import SUITE_CASE
from commands.run.test import run_test
from harness.console import plugins
from harness.console import sources as opt
from harness.console.plain import counted
from harness.console.plain import name as plain_name
from harness.errors import InputError
from harness.suites.case import THRESHOLD
from harness.suites.expectation import Expectation, SuiteCase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from commands.suite.jobs import Place
    from harness.suites.case import Case

NOT_OF_CASES = flags_of(RepeatOptions) | {THRESHOLD, SUITE_CASE.replace("_", "-")}  # a suite has other keys for them


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the command lines of the cases say.

    Attributes:
        places: Where each case runs, by its name.
        time_limit_s: The duration of the workload of a case that names none.
        left_out: For each option of `labrys.toml` that does not apply to some cases: the number of these cases.
        cases: The number of cases.
    """

    places: Mapping[str, Place]
    time_limit_s: float
    left_out: Mapping[str, int]
    cases: int

    def lines(self, config: Path | None) -> Iterator[str]:
        """Yields a line with the options of `labrys.toml` that do not apply."""
        if self.left_out:
            options = ", ".join(
                key if times == self.cases else f"{key} ({times} of {counted(self.cases, 'case')})"
                for key, times in sorted(self.left_out.items())
            )
            yield (
                f"{config}: of [test], these do not apply to this suite: {options}. The suite's file alone decides the system "
                "and the workload, and a case takes only defaults of its own system"
            )


def check_cases(ctx: click.Context, file: Path, cases: Sequence[Case]) -> Checked:
    """Checks the command line of each case before the first case runs: its options, and whether they fit together.

    Raises:
        InputError: `labrys test` refuses a case before it opens a cluster; the message names the case.
    """
    from commands.suite.jobs import place_of

    places: dict[str, Place] = {}
    left_out: Counter[str] = Counter()
    for case in cases:
        try:
            test = context_of(ctx, case)
            options = RunOptions.of(test.params)
            fitted(options, Sources.of(test))
        except click.UsageError as error:
            text = f"{error.format_message()} {opt.source_of(error)}".rstrip()
            raise InputError(f"{file}: the case {plain_name(case.name)}: {text}") from error
        except InputError as error:
            raise InputError(f"{file}: the case {plain_name(case.name)}: {error}") from error
        places[case.name] = place_of(options)
        left_out.update(getattr(test, "left_out", ()))
    usual = run_test.make_context("test", _mark(), parent=ctx.parent).params["time_limit"]
    return Checked(places=places, time_limit_s=usual, left_out=left_out, cases=len(cases))


def context_of(ctx: click.Context, case: Case) -> click.Context:
    """Returns the context of `labrys test` for a case, as its suite runs it.

    Args:
        ctx: The context of the command that reads the suite.
        case: The case.

    Raises:
        UsageError: Its command line is not valid.
        InputError: Its system or its workload cannot be loaded.
    """
    return run_test.make_context("test", [*case.arguments()[1:], *_mark()], parent=ctx.parent)


def _mark() -> list[str]:
    """Returns the words that say that a test is a case of a suite."""
    from harness.console.members import written

    mark = SuiteCase(suite="", case="", line="", expectation=Expectation())
    return ["--suite-case", json.dumps(written(mark))]


def known_options(options: Mapping[str, object]) -> dict[str, click.ParamType[Any]]:
    """Returns the types of the options that a case can have, by long name; they depend on its system and its workload.

    Args:
        options: The case's options by long name.

    Raises:
        InputError: Its system or its workload cannot be loaded.
    """
    common = opt.options_of(run_test)
    usual = choosing.NameOptions()
    system, workload = options.get("system", usual.system_name), options.get("workload", usual.workload_name)
    chosen = [
        option
        for group, name in ((plugins.SYSTEMS, system), (plugins.WORKLOADS, workload))
        for option in choosing.chosen(group, str(name), by_place=True).options
    ]
    every = {opt.long_name(option): option.type for option in (*common, *chosen)}
    return {name: kind for name, kind in every.items() if name not in NOT_OF_CASES}
