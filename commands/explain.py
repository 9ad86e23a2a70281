"""The command `labrys explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import clusters.options
from commands.compose import STORE_OPTION, settle
from commands.replay import SYSTEM_OPTION, WORKLOAD_OPTION, recalled
from commands.test import run_test
from harness.terminal import echo, open_console
from results.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.counterexample import Counterexample
    from harness.node_states import ClusterState
    from results.record import RunRecord
    from results.store import Run


@click.command("explain", cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@SYSTEM_OPTION
@WORKLOAD_OPTION
@STORE_OPTION
@click.pass_context
def explain_run(ctx: click.Context, /, run: str, store_dir: Path, **more: Any) -> None:
    """Prints the violation of RUN in order: its operations, the faults around them, the leaders, and the state of the nodes.

    Labrys repeats a simulated run from its seed, so the state of each node is exact. For a run on real nodes, it prints what it
    recorded. The command also writes the report again, with a picture of the same. The exit code is 0 if there is a
    counterexample, and 2 if there is none.
    """
    from harness.errors import ExitCode
    from results.counterexample import counterexamples_of
    from results.document import build, reason_of
    from results.load import load_record
    from results.node_states import FILE, states_document
    from results.publish import draw
    from results.store import Store
    from results.story import story
    from results.story_text import print_story

    console = open_console(stderr=False)
    found = Store(store_dir).open_run(run)
    record = load_record(found)
    reason = reason_of(record.parts)
    examples = counterexamples_of(record, reason)
    if not examples:
        console.print(f"{found.path} has no counterexample to explain. Its verdict: {reason}", soft_wrap=True)
        ctx.exit(ExitCode.UNKNOWN)
    example = examples[0]
    states: Sequence[ClusterState] = ()
    if record.test.options.get("cluster_kind") == clusters.options.SIMULATED:
        states = _states(ctx, found, record, example, store_dir=store_dir, more=more)
        if states:
            found.write_json(found.path / FILE, states_document(states))
    print_story(console, example, story(example, record, states), reason=reason)
    draw(found, record, build(record))
    echo(f"report     {found.report_html}")


def _states(
    ctx: click.Context,
    found: Run,
    record: RunRecord,
    example: Counterexample,
    *,
    store_dir: Path,
    more: dict[str, Any],
) -> Sequence[ClusterState]:
    """Returns the states of the nodes of a simulated run; prints a line and returns none if the run does not repeat itself."""
    from commands.explaining import states_of
    from results.node_states import MAX_STATES
    from results.story import times_of

    words, _ = recalled(ctx, str(found.path), store_dir=store_dir, targets="role", more=more)
    with run_test.make_context("test", words, parent=ctx.find_root()) as test:
        options = dict(test.params)
        settled = settle(test, options)
        times = times_of(example, record)
        if len(times) > MAX_STATES:
            echo(f"Labrys shows the nodes at the first {MAX_STATES} of {len(times)} times", err=True)
        states = states_of(options, settled, record.operations, times[:MAX_STATES], key=example.key)
    if states is None:
        echo(
            f"{found.path} has another history when it runs again, so the state of its nodes is unknown; "
            "use the version of labrys that made it",
            err=True,
        )
        return ()
    return states
