"""The command `labrys shrink`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import clusters.options
from commands.compose import STORE_OPTION, reproduce_line, settle
from commands.replay import SYSTEM_OPTION, WORKLOAD_OPTION, recalled
from commands.test import run_test
from harness.errors import ExitCode, InputError
from harness.parameters import Number
from harness.terminal import echo, open_console
from results.naming import RunCommand, RunName

if TYPE_CHECKING:
    from pathlib import Path

    from commands.shrinking import Candidate


@click.command("shrink", cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@click.option(
    "--minutes", type=Number(0, 100_000, above=True), default=5.0, show_default=True, help="The time limit in minutes."
)
@SYSTEM_OPTION
@WORKLOAD_OPTION
@STORE_OPTION
@click.pass_context
def shrink_run(ctx: click.Context, /, run: str, minutes: float, store_dir: Path, **more: Any) -> None:
    """Searches for a smaller version of RUN that is still invalid.

    Smaller means fewer faults, shorter faults, fewer targets, and fewer operations. RUN is a run in the simulator, named as for
    `labrys replay`. The result is a plan in the folder of the run; standard output has the command that runs it. The exit code
    is 1 if RUN is invalid again, and 2 if it is not.
    """
    from commands.shrinking import Candidate, shrink
    from commands.trial import attempt
    from nemesis.planfile import to_json

    console = open_console()
    words, found = recalled(ctx, run, store_dir=store_dir, targets="role", more=more, always_plan=True)
    with run_test.make_context("test", words, parent=ctx.find_root()) as test:
        options = dict(test.params)
        settled = settle(test, options)
        plan = settled.given
        assert plan is not None  # noqa: S101 - a replay has a plan
        if options["cluster_kind"] != clusters.options.SIMULATED:
            raise InputError(
                f"{found.path} is a run on --cluster {options['cluster_kind']}; "
                "`labrys shrink` supports only runs in the simulator"
            )
        open_loop = options["load_kind"] == "open"

        def blamed_by(candidate: Candidate) -> tuple[str, ...]:
            own = {**options, "time_limit": candidate.time_limit_s}
            if candidate.rate is not None:
                own["rate"] = candidate.rate
            given = replace(plan, faults=candidate.faults, time_limit_s=candidate.time_limit_s)
            return attempt(own, replace(settled, given=given), seed=options["seed"]).blamed

        whole = Candidate(
            faults=tuple(plan.faults), time_limit_s=options["time_limit"], rate=options["rate"] if open_loop else None
        )
        parts = blamed_by(whole)
        if not parts:
            console.print(f"{found.path} is not invalid when it runs again, so there is nothing to shrink")
            ctx.exit(ExitCode.UNKNOWN)
        runs = 0
        until_s = time.monotonic() + minutes * 60

        def has_finding(candidate: Candidate) -> bool:
            nonlocal runs
            runs += 1
            return parts[0] in blamed_by(candidate)

        best = shrink(whole, has_finding, enough=lambda: time.monotonic() >= until_s)
        path = found.path / "shrunk.json"
        smaller = replace(plan, faults=best.faults, time_limit_s=best.time_limit_s)
        found.write_text(path, to_json(smaller))
        console.print(f"{parts[0]} is invalid in both, after {runs} runs", soft_wrap=True)
        console.print(f"before  {whole.describe()}", soft_wrap=True)
        console.print(f"after   {best.describe()}", soft_wrap=True)
        values = {**options, "time_limit": best.time_limit_s, "plan_file": path}
        if best.rate is not None:
            values["rate"] = best.rate
        echo(reproduce_line(test, values))
    ctx.exit(ExitCode.INVALID)
