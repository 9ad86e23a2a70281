"""The command `labrys test`."""

from __future__ import annotations

import json
from typing import Any

import click

import clusters.options
from commands.choosing import ChoosingCommand
from commands.compose import OUTPUT_OPTIONS, RUN_OPTIONS, compose, reproduce_line, settle, with_options
from harness import options as opt
from harness.errors import ExitCode
from harness.terminal import annotation, echo, open_console


@click.command("test", cls=ChoosingCommand)
@with_options((*RUN_OPTIONS, *OUTPUT_OPTIONS))
@click.pass_context
def run_test(ctx: click.Context, /, **options: Any) -> None:
    """Runs a test, and checks its history."""
    from commands.session import carry_out
    from harness.plain import one_line
    from harness.verdict import Verdict
    from results.reading import verdict_from
    from results.store import Store
    from results.terminal import print_summary

    console = open_console()
    settled = settle(ctx, options)
    reproduce = reproduce_line(ctx, options)
    console.print(f"reproduce  {reproduce}", style="dim", soft_wrap=True)
    with clusters.options.open_cluster(options) as cluster:
        test, info, plan = compose(options, cluster, settled, reproduce, defaults=opt.from_file(ctx))
        for kind, why in info.left_out.items():
            console.print(f"left out   {one_line(f'{kind}: {why}')}", soft_wrap=True)
        session = carry_out(test, info, plan=plan, store=Store(options["store_dir"]), console=console)
    run, document = session.run, session.document
    verdict = verdict_from(document["valid"])
    print_summary(console, document, report=run.report_html)
    if options["output"] == "json":
        echo(json.dumps({"run": str(run.path), **document}))
    elif options["output"] == "github" and verdict is not Verdict.VALID:
        level = "error" if verdict is Verdict.INVALID else "warning"
        echo(annotation(level, f"labrys {info.name}", f"{document['reason']} -- {reproduce}"))
    if session.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)
    if session.error is not None and verdict is not Verdict.INVALID:  # a definite failure is never masked
        ctx.exit(ExitCode.INTERNAL)
    ctx.exit(verdict.exit_code)
