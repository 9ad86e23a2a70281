"""The command `labrys analyze`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from commands.check.command import ALGORITHM_NAMES, BYTES_PER_MIB, MAX_MEMORY_LIMIT_MIB, MAX_TIME_LIMIT_S
from harness.console.parameters import Choice, Number, PluginName, Whole, folder, given_by_user
from harness.console.plugins import MODELS
from harness.console.sources import DefaultsCommand, from_file
from harness.console.terminal import echo, open_console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Steps
    from results.pipeline.write.summary import Refusal, Summary

ROWS_SHOWN = 10
DRIVER_MEMORY = "4g"
MAX_IN_PROCESS = 100_000_000


@click.command(cls=DefaultsCommand, short_help="Check and plot many histories, with Spark if they are large.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--spark/--no-spark",
    "with_spark",
    default=None,
    help="Use Spark, or only this process.  [default: this process, up to --in-process operations in local files]",
)
@click.option(
    "--in-process",
    type=Whole(0, MAX_IN_PROCESS),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Use Spark for more than N operations. In this process, a million of them need up to 3 GB.",
)
@click.option(
    "--master", metavar="URL", help="The master of Spark.  [default: local[*], or the master of spark-submit]"
)
@click.option(
    "--out", default="analysis", show_default=True, metavar="DIR", help="The folder for tables, pages and pictures."
)
@click.option(
    "--model",
    type=PluginName(MODELS),
    help="The model of the objects; MODULE:CLASS or FILE.py:CLASS is a class of your own.  "
    "[default: the model of each run's workload]",
)
@click.option(
    "--workload",
    metavar="NAME",
    help="Check with the checker of this workload.  [default: the workload of each run]",
)
@click.option(
    "--workload-option", "workload_options", multiple=True, metavar="NAME=VALUE", help="As for `labrys check`."
)
@click.option("--initial", metavar="EDN", help="The initial state of the objects, e.g. 0 or '{:x 0 :y 0}'.")
@click.option("--nil-read", type=Choice(["any", "exact"]), help="As for `labrys check`.")
@click.option("--failed-cas", type=Choice(["drop", "observe"]), help="As for `labrys check`.")
@click.option("--crashed-dequeue", type=Choice(["takes", "never"]), help="As for `labrys check`.")
@click.option("--keyed/--no-keyed", default=None, help="As for `labrys check`.")
@click.option(
    "--time-limit",
    type=Number(0, MAX_TIME_LIMIT_S, above=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Stop the search after S seconds for each key, with the verdict unknown.",
)
@click.option(
    "--memory-limit",
    type=Whole(1, MAX_MEMORY_LIMIT_MIB),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Stop a search at this much memory for each key, with the verdict unknown.",
)
@click.option("--algorithm", type=Choice(ALGORITHM_NAMES), default="auto", show_default=True, help="The algorithm.")
@click.option(
    "--cross-check", is_flag=True, help="Check with a second algorithm too; a key about which they disagree is unknown."
)
@click.option(
    "--certificate", is_flag=True, help="Write a legal order of the operations of each valid key into the table."
)
@click.option("--explain-model", is_flag=True, help="Write the effort of the search of each key into the table.")
@click.option(
    "--strict",
    is_flag=True,
    help="Stop with an error at malformed rows, instead of moving them to the quarantine table.",
)
@click.option("--incremental", is_flag=True, help="Read only the runs that are new or changed since the last analysis.")
@click.option(
    "--keep-operations", is_flag=True, help="Write a table of all operations, also of those read from Parquet."
)
@click.option("--pictures/--no-pictures", default=True, show_default=True, help="Write a page with plots.")
@click.option(
    "--driver-memory", metavar="SIZE", help="The heap of the Spark driver; a local master works in it.  [default: 4g]"
)
@click.option(
    "--scratch", type=folder(), help="The folder to which Spark spills shuffles.  [default: Spark's own folder]"
)
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; can be repeated.")
@click.option(
    "--format", "output", type=Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@click.pass_context
def analyze(ctx: click.Context, /, **given: Any) -> None:
    """Checks and plots many histories of any size.

    A PATH is the folder of a run, a store, a glob pattern, a Parquet table of operations, or a history in JSONL or EDN, plain
    or compressed with gzip. Spark also reads from hdfs: and s3a:. Malformed rows go to the quarantine table, each with the
    reason. A run that is unreadable or empty gets the verdict unknown; the other runs are still checked.

    This process checks up to a million operations in local files, within seconds and without Java. Spark checks larger inputs,
    other file systems, and histories with malformed events.

    Exit codes: 0 all valid, 1 some invalid, 2 some unknown, 254 bad input.
    """
    import json

    from checker.deciders import Wanted
    from harness.errors import InputError
    from results.pipeline.options import AnalysisOptions

    wanted = Wanted(
        model=given["model"],
        workload=given["workload"],
        settings=given["workload_options"],
        initial=given["initial"],
        by_place=given_by_user(ctx, "model" if given["model"] is not None else "workload"),
    )
    if (wanted.model or wanted.workload) and not wanted.of_history().takes_initial and wanted.initial is not None:
        raise InputError(f"--initial: the workload {wanted.workload} takes no initial state; leave it out")
    settings = _settings(given["conf"])
    conventions = {
        name: given[name] for name in ("nil_read", "failed_cas", "crashed_dequeue") if given[name] is not None
    }
    options = AnalysisOptions(
        paths=given["paths"],
        out=given["out"],
        wanted=wanted,
        conventions=conventions,
        keyed=given["keyed"],
        time_limit_s=given["time_limit"],
        memory_limit=given["memory_limit"] * BYTES_PER_MIB,
        algorithm=given["algorithm"],
        cross_check=given["cross_check"],
        certificate=given["certificate"],
        explain_model=given["explain_model"],
        strict=given["strict"],
        incremental=given["incremental"],
        keep_operations=given["keep_operations"],
        pictures=given["pictures"],
        in_process=given["in_process"],
    )
    summary, steps = _analyzed(options, given, settings)
    if given["output"] == "json":
        echo(json.dumps({**as_document(summary, steps), "defaults": from_file(ctx)}, indent=2))
    else:
        echo(as_text(summary))
        if given["pictures"]:
            echo(f"page: {summary.out}/index.html")
    ctx.exit(int(summary.exit_code))


def _analyzed(options: AnalysisOptions, given: Mapping[str, Any], settings: dict[str, str]) -> tuple[Summary, Steps]:
    """Runs the job, in this process or with Spark; returns its summary and its steps."""
    from results.pipeline.errors import NotSuited
    from results.pipeline.local import analyze_here
    from results.pipeline.progress import Steps
    from results.pipeline.spark.session import is_submitted

    names = ("master", "driver_memory", "scratch")
    for_spark = [f"--{name.replace('_', '-')}" for name in names if given[name] is not None]
    for_spark += ["--conf"] * bool(settings)
    if is_submitted():
        for_spark.append("spark-submit")
    if given["with_spark"] is False and for_spark:
        raise click.UsageError(f"{for_spark[0]} is for Spark, and --no-spark excludes Spark; give one of them")
    if given["with_spark"] or for_spark:
        return _with_spark(options, given, settings)
    console = open_console()
    try:
        steps = Steps(console)
        return analyze_here(options, steps), steps
    except NotSuited as error:
        if given["with_spark"] is False:
            raise
        steps.note(f"using Spark: {error}")
    return _with_spark(options, given, settings)


def _with_spark(options: AnalysisOptions, given: Mapping[str, Any], settings: dict[str, str]) -> tuple[Summary, Steps]:
    """Runs the job with Spark."""
    from results.pipeline.spark.session import is_submitted, require_spark

    require_spark()
    from results.pipeline.spark.job import analyze as analyze_with_spark
    from results.pipeline.spark.progress import SparkSteps
    from results.pipeline.spark.running import running

    # spark-submit joins standard error to standard output; with --format json, only the document may go there.
    console = open_console(quiet=is_submitted() and given["output"] == "json")
    with running(
        master=given["master"],
        driver_memory=given["driver_memory"] or DRIVER_MEMORY,
        scratch=given["scratch"],
        settings=settings,
        named=options.wanted.model or options.wanted.workload,
    ) as spark:
        steps = SparkSteps(spark, console)
        summary = analyze_with_spark(spark, options, steps)
    return summary, steps


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"expected NAME=VALUE, found {setting!r}", param_hint="--conf")
        settings[name] = value
    return settings


def as_document(summary: Summary, steps: Steps) -> dict[str, Any]:
    """Returns an analysis as a JSON document, with the seconds of each step."""
    from harness.suites.expectation import CaseOutcome

    return {
        "format": "labrys-analysis-summary",
        "version": 1,
        "out": summary.out,
        "verdict": str(summary.verdict),
        "runs": summary.runs,
        "read": summary.read,
        "operations": summary.operations,
        "verdicts": {name: summary.counts.get(name, 0) for name in ("valid", "invalid", "unknown")},
        "outcomes": {str(outcome): summary.outcomes.get(str(outcome), 0) for outcome in CaseOutcome},
        "invalid": list(summary.refuted),
        "unknown": list(summary.undecided),
        "order_agrees": {
            **{name: summary.orders.get(name, 0) for name in ("valid", "invalid", "unknown")},
            "keys": list(summary.misordered),
        },
        "quarantine": {
            "rows": summary.quarantined,
            "reasons": [
                {"reason": reason.reason, "rows": reason.rows, "source": reason.source, "sources": reason.sources}
                for reason in summary.reasons
            ],
        },
        "tables": {name: list(folders) for name, folders in summary.tables.items()},
        "path": steps.path,
        "seconds": dict(steps.seconds),
    }


def _quarantined(refusal: Refusal) -> str:
    rows = "1 row" if refusal.rows == 1 else f"{refusal.rows:,} rows"
    more = refusal.sources - 1
    others = f" and {more:,} other file{'' if more == 1 else 's'}" if more else ""
    reason = refusal.reason.removeprefix(f"{refusal.source}: ")  # the line already names the file
    return f"{rows} of {refusal.source}{others}: {reason}"


def _where(row: Mapping[str, Any]) -> str:
    return row["run"] if row["key"] is None else f"{row['run']} key {row['key']}"


def as_text(summary: Summary) -> str:
    """Returns an analysis as text for the terminal."""
    from harness.console.plain import counted, one_line
    from harness.suites.expectation import CaseOutcome

    verdicts = ", ".join(f"{summary.counts.get(name, 0):,} {name}" for name in ("valid", "invalid", "unknown"))
    operations = counted(summary.operations, "operation")
    lines = [f"{counted(summary.runs, 'run')} ({summary.read:,} read now), {operations}; keys: {verdicts}"]
    outcomes = ", ".join(
        f"{summary.outcomes.get(str(outcome), 0):,} {outcome.replace('-', ' ')}" for outcome in CaseOutcome
    )
    lines.append(f"outcomes of runs: {outcomes}")
    for word, rows in (("invalid", summary.refuted), ("unknown", summary.undecided)):
        lines += [
            one_line(f"{word}  {_where(row)}: {row['explanation'] or row['cause'] or ''}") for row in rows[:ROWS_SHOWN]
        ]
        if summary.counts.get(word, 0) > ROWS_SHOWN:
            lines.append(f"{word}  ... and {summary.counts[word] - ROWS_SHOWN:,} more in the table of verdicts")
    lines += [one_line(f"order  {_where(row)}: {row['order_reason']}") for row in summary.misordered[:ROWS_SHOWN]]
    if (more := summary.orders.get("invalid", 0) - ROWS_SHOWN) > 0:
        lines.append(f"order  ... and {more:,} more in the table of verdicts")
    if unknown := summary.orders.get("unknown", 0):
        lines.append(f"order  {unknown:,} {'key has' if unknown == 1 else 'keys have'} an order that was not checked")
    lines += [one_line(f"quarantine  {_quarantined(reason)}") for reason in summary.reasons]
    lines.append(f"tables of {', '.join(summary.tables)}: {summary.out}")
    return "\n".join(lines)
