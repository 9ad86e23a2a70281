"""The command `labrys check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.console.parameters import Choice, Completed, Number, PluginName, Whole, given_by_user
from harness.console.plain import message, name
from harness.console.plugins import MODELS
from harness.console.sources import DefaultsCommand, from_file
from harness.console.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.checking import Checked, Refused, Request
    from checker.errors import Disagreement
    from checker.judging.judged import Judged
    from harness.errors import LabrysError

ALGORITHM_NAMES = ("auto", "zones", "search", "linear", "wgl", "competition")
BYTES_PER_MIB = 1 << 20
MAX_TIME_LIMIT_S = 1e9
MAX_MEMORY_LIMIT_MIB = 1 << 30


@click.command(cls=DefaultsCommand, short_help="Check a history.")
@click.argument("files", type=Completed(), nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--model",
    type=PluginName(MODELS),
    help="The model of the object; MODULE:CLASS or FILE.py:CLASS is a class of your own.  "
    "[default: the model of the run's workload; without a run, cas-register]",
)
@click.option(
    "--workload", metavar="NAME", help="Check with the checker of this workload.  [default: the workload of the run]"
)
@click.option(
    "--workload-option",
    "workload_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the workload; can be repeated.  [default: the options of the run]",
)
@click.option(
    "--consistency-model",
    metavar="NAME",
    help="The consistency model of transactions; the same as --workload-option consistency-model=NAME.",
)
@click.option(
    "--anomalies",
    metavar="NAMES",
    help="Anomalies that transactions must not have besides those that the model prohibits, with commas between them; the same "
    "as --workload-option anomalies=NAMES.",
)
@click.option("--initial", metavar="EDN", help="The initial state of the object, e.g. 0 or '{:x 0 :y 0}'.")
@click.option(
    "--nil-read",
    type=Choice(["any", "exact"]),
    help="A read of nil can have seen any value (any), or saw nil (exact).  [default: set by the file; else any for EDN, "
    "exact for other formats]",
)
@click.option(
    "--failed-cas",
    type=Choice(["drop", "observe"]),
    help="Ignore a failed cas (drop), or take it as a proof that the value was different (observe).  "
    "[default: set by the file; else observe for console logs, drop for other formats]",
)
@click.option(
    "--crashed-dequeue",
    type=Choice(["takes", "never"]),
    help="A dequeue without an answer may have removed an element (takes), or did not (never).  "
    "[default: set by the file; else never for EDN, takes for other formats]",
)
@click.option(
    "--keyed/--no-keyed",
    default=None,
    help="Values are pairs [key value] of independent keys.  [default: detected in EDN; no in other formats]",
)
@click.option("--algorithm", type=Choice(ALGORITHM_NAMES), default="auto", show_default=True, help="The algorithm.")
@click.option(
    "--time-limit",
    type=Number(0, MAX_TIME_LIMIT_S, above=True),
    metavar="S",
    help="Stop after S seconds for each history, with the verdict unknown.",
)
@click.option(
    "--memory-limit",
    type=Whole(1, MAX_MEMORY_LIMIT_MIB),
    metavar="MIB",
    help="Stop a search at this much memory, with the verdict unknown.  [default: half of the free memory]",
)
@click.option(
    "--unpack-limit",
    type=Whole(1, MAX_MEMORY_LIMIT_MIB),
    metavar="MIB",
    help="The maximum size of an uncompressed history.  [default: 65536; also limited by free disk space]",
)
@click.option("--cross-check", is_flag=True, help="Check with a second algorithm too, and fail if the two disagree.")
@click.option("--certificate", is_flag=True, help="Print a legal order of the operations of a valid history.")
@click.option(
    "--explain-model",
    is_flag=True,
    help="Print statistics of the search: states, classes, reductions, and what makes the history hard.",
)
@click.option(
    "--empty",
    type=Choice(["unknown", "valid"]),
    default="unknown",
    show_default=True,
    help="The verdict for a history without operations; knossos says valid.",
)
@click.option(
    "--format",
    "output",
    type=Choice(["text", "json", "edn"]),
    default="text",
    show_default=True,
    help="Output format.",
)
def check(
    *,
    files: tuple[str, ...],
    model: str | None,
    workload: str | None,
    workload_options: tuple[str, ...],
    consistency_model: str | None,
    anomalies: str | None,
    initial: str | None,
    nil_read: str | None,
    failed_cas: str | None,
    crashed_dequeue: str | None,
    keyed: bool | None,
    algorithm: str,
    time_limit: float | None,
    memory_limit: int | None,
    unpack_limit: int | None,
    cross_check: bool,
    certificate: bool,
    explain_model: bool,
    empty: str,
    output: str,
) -> None:
    """Checks histories: against a model for linearizability, or with the judge of a workload.

    FILE is a history.jsonl or an operations.parquet of Labrys, JSON Lines, an EDN history of Jepsen or knossos, or a log in a
    format that porcupine reads. FILE can be compressed with gzip. Labrys detects the format from the content. FILE can also be
    the folder of a run, or - for standard input.

    Exit codes: 0 valid, 1 invalid, 2 unknown, 254 bad input. With several files, 1 wins over all others.
    """
    from functools import partial

    from checker import presentation
    from checker.checking import Request
    from checker.deciders import Wanted
    from harness.verdict import Verdict

    context = click.get_current_context()
    by_person = given_by_user(context, "model" if model is not None else "workload")
    own = {"consistency-model": consistency_model, "anomalies": anomalies}
    settings = [*workload_options, *(f"{option}={value}" for option, value in own.items() if value is not None)]
    given = {"nil_read": nil_read, "failed_cas": failed_cas, "crashed_dequeue": crashed_dequeue}
    request = Request(
        wanted=Wanted(model=model, workload=workload, settings=settings, initial=initial, by_place=by_person),
        conventions={name: value for name, value in given.items() if value is not None},
        keyed=keyed,
        algorithm=algorithm,
        time_limit_s=time_limit,
        memory_limit=None if memory_limit is None else memory_limit * BYTES_PER_MIB,
        cross_check=cross_check,
        certificate=certificate,
        unpack_limit=None if unpack_limit is None else unpack_limit * BYTES_PER_MIB,
        empty=Verdict(empty),
        explain_model=explain_model,
    )
    results = _results(files, request)
    show: dict[str, Callable[[Sequence[Checked | Judged | Refused]], str]] = {
        "text": presentation.as_text,
        "json": partial(presentation.as_json, defaults=from_file(context)),
        "edn": presentation.as_edn,
    }
    echo(presentation.sayable(results, show[output]))
    context.exit(int(presentation.exit_code(results)))


def _results(files: tuple[str, ...], request: Request) -> list[Checked | Judged | Refused]:
    """Decides each file. The error of a single file is raised; with other results, it is a result too."""
    from checker.checking import Refused, check_file, refusal

    results: list[Checked | Judged | Refused] = []
    for file in files:
        try:
            for result in check_file(file, request):
                results.append(result)
                _report(result)
        except BaseException as error:
            why = refusal(error)
            if len(files) == 1 and not results:
                _keep(why)
                raise
            refused = Refused(name=file, error=why)
            results.append(refused)
            _report(refused)
    return results


def _report(result: Checked | Judged | Refused) -> None:
    """Prints the warnings of a result on standard error, and the traceback of an error in Labrys."""
    from checker.checking import Refused
    from checker.errors import CheckFailed
    from harness.console.process import in_full

    if not isinstance(result, Refused):
        for warning in result.history.warnings:
            echo(message(f"{name(result.history.name)}: {warning}"), err=True)
        return
    _keep(result.error)
    if isinstance(result.error, CheckFailed):
        echo(message(in_full(result.error)), err=True)


def _keep(error: LabrysError) -> None:
    """Keeps the history on which algorithms disagree, if that is the error, and adds a note with the path."""
    from checker.errors import Disagreement

    if isinstance(error, Disagreement):
        try:
            error.add_note(_kept(error))
        except Exception as problem:  # noqa: BLE001 - any other error must not hide the disagreement
            error.add_note(f"the history could not be kept: {problem}")


def _kept(error: Disagreement) -> str:
    """Keeps the history on which algorithms disagree, and returns a sentence with the path."""
    import tempfile
    from pathlib import Path

    from checker.formats.conventions import OWN
    from checker.formats.jepsen import write_history
    from harness.pairing import events_of

    directory = Path(tempfile.mkdtemp(prefix="labrys-disagreement-"))
    write_history(directory / "history.edn", events_of(error.operations), conventions={**OWN, **error.conventions})
    return f"the history is in {directory / 'history.edn'}"
