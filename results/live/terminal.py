"""The summary of a run on the terminal: the verdict first, the reproduce line last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from harness.builds import Provenance
from harness.console.members import read
from harness.console.plain import capital, counted, name, one_line, plain
from harness.console.terminal import PIPE_WIDTH
from harness.errors import headline
from harness.faults import called
from harness.phases import Phase
from harness.states import ONE_LEADER
from harness.units import NS_PER_S
from harness.verdict import Verdict
from results.stored.reading import member, shown_from, verdict_from
from results.words.bounds import MAX_FUNCTIONS_SHOWN, first, label
from results.words.formatting import (
    availability,
    elections,
    fault_availability,
    outcomes,
    percent,
    ratio,
    seconds,
    times,
    worst_gap,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

    from harness.op import Value

MAX_FAULTS = 30
MIN_WIDTH = 110
MAX_SENTENCE = 2_000
_STYLES = {
    Verdict.VALID: ("✓", "bold green"),
    Verdict.INVALID: ("✗", "bold red"),
    Verdict.UNKNOWN: ("?", "bold yellow"),
}


def after_progress(console: Console) -> None:
    """Prints an empty line on a terminal, which also has the progress. A pipe begins with the verdict."""
    if console.is_terminal:
        console.print()


def print_summary(console: Console, document: Mapping[str, Value], *, report: Path | None) -> None:
    """Prints the summary of a run.

    The console handles colours, width and NO_COLOR. Every sign has a word beside it.

    Args:
        console: The console for the output.
        document: The content of `results.json`.
        report: The path of the report, if there is one.
    """
    after_progress(console)
    shown = shown_from(document)
    sign, style = _STYLES[shown.alone]
    built = document.get("artifact")
    mended = "" if built is None else read(built, Provenance, "artifact").mended
    console.print(
        Text.assemble((f"{sign} {shown.words}", style), "  ", sentence(f"{mended} {document['reason']}".strip()))
    )
    for line in [*_tested(document), *_circumstances(document["counterexample"])]:
        console.print(Text(f"  {sentence(line)}", style="dim"))
    console.print()
    # Tables are for terminals; in a pipe, one line for each row is easier to search.
    in_columns = console.width < PIPE_WIDTH
    console.print(_parts(document) if in_columns else _part_lines(document))
    for threshold in document["thresholds"]:
        console.print(_threshold(threshold))
    if document["faults"] or document["left_out"]:
        _print_faults(console, document, in_columns=in_columns and console.width >= MIN_WIDTH)
    console.print()
    console.print(Text(_operations(document), style="dim"))
    _print_availability(console, document["availability"])
    if document["leadership"]["leaders"]:
        console.print(Text(f"leaders (polled once a second): {elections(document['leadership'])}", style="dim"))
    # Where the system promises one leader, the part has the sentence.
    for rival in () if ONE_LEADER in document["parts"] else document["rival_leaders"]:
        console.print(Text.assemble(("! ", "yellow"), sentence(rival["sentence"])))
    if phases := member(document, "phases", list[Phase]):
        console.print(Text(f"time: {times(phases)}", style="dim"))
    for problem in document["problems"][:MAX_FAULTS]:
        console.print(Text.assemble(("! ", "yellow"), sentence(problem)))
    if len(document["problems"]) > MAX_FAULTS:
        console.print(
            Text(f"and {counted(len(document['problems']) - MAX_FAULTS, 'more problem')}; the report has all")
        )
    if report is not None:
        console.print(Text.assemble(("report     ", "dim"), plain(str(report))), soft_wrap=True)
    console.print(Text.assemble(("reproduce  ", "dim"), one_line(document["reproduce"])), soft_wrap=True)


def _print_availability(console: Console, measured: Mapping[str, Value] | None) -> None:
    """Prints the availability of all functions together, and of each of several functions."""
    console.print(Text(f"availability: {availability(measured)}", style="dim"))
    if measured is not None and len(measured["by_f"]) > 1:
        console.print(Text(f"by function: {_functions(measured['by_f'])}", style="dim"))


def _print_faults(console: Console, document: Mapping[str, Value], *, in_columns: bool) -> None:
    """Prints the first faults after an empty line, as a table or two lines each, and the kinds that were left out."""
    console.print()
    if document["faults"] and in_columns:
        console.print(_faults(document))
    for fault in document["faults"][:MAX_FAULTS] if not in_columns else ():
        console.print(_fault(fault))
    if len(document["faults"]) > MAX_FAULTS:
        console.print(Text(f"and {counted(len(document['faults']) - MAX_FAULTS, 'more fault')}; results.json has all"))
    for kind, reason in document["left_out"].items():
        console.print(Text.assemble(("left out   ", "yellow"), one_line(f"{kind}: {reason}")))


def _operations(document: Mapping[str, Value]) -> str:
    """Returns the number of operations with each result, and the latency of the first functions."""
    counts = document["counts"]
    line = f"{counted(counts['operations'], 'operation')}: {outcomes(counts)}"
    for f, quantiles in first(document["latency"], MAX_FUNCTIONS_SHOWN).items():
        line += f"; {label(f)} p50 {quantiles['p50_ms']:.1f} ms, p99 {quantiles['p99_ms']:.1f} ms"
    if len(document["latency"]) > MAX_FUNCTIONS_SHOWN:
        line += f"; and {counted(len(document['latency']) - MAX_FUNCTIONS_SHOWN, 'more function')}"
    return line


def _functions(by_f: Mapping[str, Mapping[str, Value]]) -> str:
    """Returns the availability of the first functions, those with the longest gap first."""
    ordered = sorted(by_f, key=lambda f: -by_f[f]["longest_gap_s"])
    texts = [
        f"{label(f)} {percent(by_f[f]['answered'], by_f[f]['operations'])} answered, "
        f"longest gap {seconds(by_f[f]['longest_gap_s'])}"
        for f in ordered[:MAX_FUNCTIONS_SHOWN]
    ]
    more = len(ordered) - len(texts)
    return "; ".join([*texts, *([f"and {counted(more, 'more function')}"] if more else [])])


def sentence(text: str) -> str:
    """Returns a foreign sentence as one line. A long sentence is cut, and its length is added."""
    return one_line(text) if len(text) <= MAX_SENTENCE else name(text, MAX_SENTENCE)


def _tested(document: Mapping[str, Value]) -> list[str]:
    """Returns which promise the run tested, and who makes it."""
    return [] if document["promise"] is None else [f"Tested: {document['promise']}"]


def _circumstances(example: Value) -> list[str]:
    """Returns the circumstances of a counterexample."""
    lines = example.get("circumstances") if isinstance(example, dict) else None
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _threshold(row: Mapping[str, Value]) -> Text:
    """Returns a threshold with its number."""
    sign, style = _STYLES[verdict_from(row["kept"])]
    text = sentence(row["crossed"] or f"{row['threshold']}: it is {row['measured']:.6g}")
    return Text.assemble(("threshold  ", "dim"), (sign, style), f" {text}")


def _verdict(valid: Value) -> Text:
    verdict = verdict_from(valid)
    sign, style = _STYLES[verdict]
    return Text(f"{sign} {verdict}", style=style)


def _parts(document: Mapping[str, Value]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("part", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for part_name, part in document["parts"].items():
        table.add_row(Text(label(part_name)), _verdict(part["valid"]), Text(sentence(part["reason"])))
    return table


def _part_lines(document: Mapping[str, Value]) -> Text:
    width = max((len(label(part_name)) for part_name in document["parts"]), default=0)
    lines = [
        Text.assemble(f"{label(part_name):<{width}}  ", _verdict(part["valid"]), f"  {sentence(part['reason'])}")
        for part_name, part in document["parts"].items()
    ]
    return Text("\n").join(lines)


def _faults(document: Mapping[str, Value]) -> Table:
    """Returns a row for each fault.

    `rate` is the rate of answers during the fault, as a share of the rate before. `ok again` is the time from healing to
    sustained answers.
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("fault", "nodes", "from", "to", "effect"):
        table.add_column(column, no_wrap=column != "effect", overflow="fold")
    for column in ("answered", "rate", "first ok", "gap", "ok again"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("leaders", overflow="fold")
    for fault in document["faults"][:MAX_FAULTS]:
        around = fault["availability"]
        during = around["during"] if around else None
        after = around["after"] if around else None
        table.add_row(
            Text(label(called(fault["planned"]["kind"], fault["planned"]["role"]))),
            Text(name(" ".join(fault["targets"]))),
            Text(_seconds(fault["start_ns"])),
            Text(_seconds(fault["end_ns"])),
            Text.assemble(f"{_fired(fault)}\n" if fault["fired"] else "", _effect(fault)),
            Text(percent(during["answered"], during["operations"]) if during else "—"),
            Text(ratio(around["rate_share"]) if around else "—"),
            Text(seconds(during["first_ok_s"]) if during else "—"),
            Text(_gap(around) if around else "—"),
            Text(seconds(after["sustained_ok_s"]) if after else "—"),
            Text(elections(fault["leadership"]["during"]) if fault["leadership"] else "—"),
        )
    return table


def _gap(around: Mapping[str, Value]) -> str:
    """Returns the longest gap during a fault, and that of the function with a longer one in a line of its own."""
    during = around["during"]
    worst = worst_gap(during, {f: pair["during"] for f, pair in around["by_f"].items()})
    text = seconds(during["longest_gap_s"])
    return text if worst is None else f"{text}\n{worst[0]} {seconds(worst[1])}"


def _fault(fault: Mapping[str, Value]) -> Text:
    """Returns a row of the table as two lines, for narrow consoles."""
    text = Text.assemble(
        (label(called(fault["planned"]["kind"], fault["planned"]["role"])), "bold"),
        f" of {name(' '.join(fault['targets'])) or 'no node'}, ",
        f"{_seconds(fault['start_ns'])} to {_seconds(fault['end_ns'])}{f', {_fired(fault)}' if fault['fired'] else ''}\n  ",
        _effect(fault),
    )
    if fault["availability"]:
        text.append(f"\n  {fault_availability(fault['availability'])}")
        text.append(f"; {elections(fault['leadership']['during'])}")
    return text


def _seconds(time_ns: int) -> str:
    return seconds(time_ns / NS_PER_S)


def _fired(fault: Mapping[str, Value]) -> str:
    """Returns what fired the trigger of a fault."""
    return f"began {sentence(fault['fired']['what'])}"


def _effect(fault: Mapping[str, Value]) -> Text:
    reasons = [
        *([fault["proof"]["reason"]] if fault["proof"] else ()),
        *(
            [capital(headline(fault["error"]))] if fault["error"] else ()
        ),  # the other lines of an error may be from logs
    ] or ["there is no proof"]
    word = ("proven: ", "green") if fault["proof"] and fault["proof"]["effective"] else ("not proven: ", "bold yellow")
    return Text.assemble(word, sentence(" ".join(reasons)))
