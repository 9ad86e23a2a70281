"""The run that a bisection repeats: an invalid run of the store, or a case of a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from commands.options.compose import settle
from commands.options.run_options import RunOptions, Sources
from harness.console.plain import name as plain_name
from harness.errors import InputError
from harness.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from commands.options.compose import Settled

CASE_SEED = 0  # of a suite whose cases name no seed


def of_run(
    ctx: click.Context, run: str, store_dir: Path, more: dict[str, Any], over: str | None
) -> tuple[Settled, tuple[str, ...]]:
    """Returns the options that carry out the plan of a run again, and its invalid parts.

    Args:
        ctx: The context of the command.
        run: The run, as on the command line.
        store_dir: The store.
        more: The other options of `labrys replay`.
        over: The long name of the option whose values are searched, if it is given.

    Raises:
        InputError: The run cannot be read, or is not invalid.
    """
    from commands.replay.command import recalled
    from results.store.store import Store
    from results.stored.load import load_record

    stored_run = Store(store_dir).open_run(run)
    if stored_run.is_running():
        raise InputError(f"{stored_run.path} is still running, and bisect needs its verdict")
    parts = tuple(part.name for part in load_record(stored_run).parts if part.verdict is Verdict.INVALID)
    if not parts:
        raise InputError(
            f"{stored_run.path} is not invalid, so bisect does not know what a bad run is; "
            "`labrys replay RUN --repeat 10` runs its plan again, and `labrys hunt` searches for an invalid run"
        )
    (options, sources), _, _ = recalled(
        ctx,
        run,
        store_dir=store_dir,
        targets="role",
        more={**more, "test_name": None},
        always_plan=True,
        without=over,
    )
    return settle(options, sources), parts


def of_case(ctx: click.Context, file: Path, name: str) -> tuple[Settled, tuple[str, ...]]:
    """Returns the options of a case of a suite, and the parts that it expects to be invalid; none: its verdict counts.

    Args:
        ctx: The context of the command.
        file: The suite.
        name: The name of the case.

    Raises:
        InputError: The suite cannot be read, or has no such case, or the case is not valid.
    """
    from commands.suite.contexts import context_of, known_options
    from harness.suites.suite import load_suite

    cases = load_suite(file, seed=CASE_SEED, known=known_options).cases
    case = next((candidate for candidate in cases if candidate.name == name), None)
    if case is None:
        names = ", ".join(plain_name(other.name) for other in cases[:10])
        raise InputError(f"{file} has no case {plain_name(name)}; the first cases are {names}")
    try:
        test = context_of(ctx, case)
        settled = settle(RunOptions.of(test.params), Sources.of(test))
    except click.UsageError as error:
        raise InputError(f"{file}: the case {plain_name(name)}: {error.format_message()}") from error
    return settled, tuple(sorted(case.expect_parts))
