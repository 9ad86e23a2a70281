"""The command `labrys explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import clusters.options
from commands.options import subjects
from commands.options.compose import settle
from commands.options.run_options import OutputOptions
from commands.replay.command import ByPlace, recalled
from harness.console.terminal import echo, open_console
from harness.declare import with_option, with_options
from nemesis.choices import FAULT_OPTION
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from harness.node_states import ClusterState
    from results.logs.lines import Logs
    from results.page.evidence import Evidence
    from results.page.story import Scene
    from results.record.record import RunRecord
    from results.store.store import Run


@click.command("explain", cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@with_options(ByPlace)
@FAULT_OPTION
@with_option(OutputOptions, "store_dir")
@click.pass_context
def explain_run(ctx: click.Context, /, run: str, store_dir: Path, **more: Any) -> None:
    """Prints the violation of RUN in order: its operations, the faults around them, the leaders, and the state of the nodes.

    Labrys repeats a simulated run from its seed, so the state of each node is exact. For a run on real nodes, it prints what
    it recorded, and for programs with pipes the messages around the operations. A part without a counterexample has the same
    around its time: faults, what the nodes reported, lines of their logs, and how far each node was at each poll. A run that
    is unknown has the codes of its errors and the last reports of the nodes. In each case there are the first lines of each
    node's last start, and its warnings and errors since then. The command also writes the report again, with the same. The
    exit code is 0 if RUN is invalid, and 2 if there is no violation to explain.
    """
    from rich.text import Text

    from harness.console.plain import one_line
    from harness.errors import ExitCode
    from harness.leaders import rivals
    from harness.states import ONE_LEADER
    from harness.verdict import Verdict, verdict_of
    from results.circumstances.losses import reason as reason_of
    from results.circumstances.messages import messages_near
    from results.logs.since_start import since_start
    from results.page.evidence import evidence, logs_of
    from results.page.story import scene_of, story
    from results.page.story_text import print_messages, print_reason, print_since, print_story
    from results.publish import draw
    from results.record.counterexample import counterexamples_of
    from results.store.store import Store
    from results.stored.document import build
    from results.stored.load import load_record

    console = open_console(stderr=False)
    stored_run = Store(store_dir).open_run(run)
    record = load_record(stored_run)
    reason = reason_of(record)
    examples = counterexamples_of(record, reason)
    logs = logs_of(stored_run, record, evidence(record))
    shown = since_start(record, logs.since, scene_of(examples[0]).to_ns) if examples else ()
    others = evidence(record, logs, shown)
    scenes = [*map(scene_of, examples[:1]), *(other.scene for other in others if other.scene is not None)]
    if not examples and not others:
        console.print(f"{stored_run.path} has no violation to explain. Its verdict: {reason}", soft_wrap=True)
        ctx.exit(ExitCode.UNKNOWN)
    states = _states(ctx, stored_run, record, scenes, logs, store_dir=store_dir, more=more) if scenes else ()
    if examples:
        print_story(console, examples[0], story(scenes[0], record, states, logs.near(scenes[0].spans)), reason=reason)
        print_since(console, shown)
    else:
        print_reason(console, verdict_of(record.parts), reason)
    print_messages(console, messages_near(stored_run, record, examples[0] if examples else None))
    _print_others(console, record, others, logs=logs, states=states)
    for note in logs.notes:
        console.print(Text(one_line(note), style="dim"), soft_wrap=True)
    is_part = any(part.name == ONE_LEADER for part in record.parts)  # then its evidence has them
    for rival in () if is_part else rivals(record.sightings):
        console.print(Text(str(rival)), soft_wrap=True)
    draw(stored_run, record, build(record))
    echo(f"report     {stored_run.report_html}")
    if verdict_of(record.parts) is not Verdict.INVALID:
        ctx.exit(ExitCode.UNKNOWN)


def _print_others(
    console: Console,
    record: RunRecord,
    others: Sequence[Evidence],
    *,
    logs: Logs,
    states: Sequence[ClusterState],
) -> None:
    """Prints the evidence of the parts without a counterexample."""
    from results.page.story import story
    from results.page.story_text import print_evidence, print_since

    for other in others:
        around = () if other.scene is None else story(other.scene, record, states, logs.near(other.scene.spans))
        print_evidence(console, other, around)
        print_since(console, other.since)


def _states(
    ctx: click.Context,
    run: Run,
    record: RunRecord,
    scenes: Sequence[Scene],
    logs: Logs,
    *,
    store_dir: Path,
    more: dict[str, Any],
) -> Sequence[ClusterState]:
    """Writes and returns the states of the nodes of a simulated run; prints a line if the run does not repeat itself."""
    if record.test.options.get("cluster_kind") != clusters.options.SIMULATED:
        return ()
    from commands.replay.states import states_of
    from results.page.story import times_of
    from results.stored.node_states import FILE, MAX_STATES, states_document

    (options, sources), _, _ = recalled(ctx, str(run.path), store_dir=store_dir, targets="role", more=more)
    if subjects.by_programs(options):
        return ()  # the state of a program is in its memory
    settled = settle(options, sources)
    lines = [(scene, logs.near(scene.spans)) for scene in scenes]
    times = list(dict.fromkeys(time for scene, near in lines for time in times_of(scene, record, near) if time >= 0))
    if len(times) > MAX_STATES:
        echo(f"Labrys shows the nodes at the first {MAX_STATES} of {len(times)} times", err=True)
    states = states_of(settled, record.operations, times[:MAX_STATES], key=_key_of(scenes))
    if states is None:
        echo(
            f"{run.path} has another history when it runs again, so the state of its nodes is unknown; "
            "use the version of labrys that made it",
            err=True,
        )
        return ()
    run.write_json(run.path / FILE, states_document(states))
    return states


def _key_of(scenes: Sequence[Scene]) -> str | None:
    """Returns the key whose values the states show: that of the first operation."""
    return next((operation.key for scene in scenes for operation in scene.operations), None)
