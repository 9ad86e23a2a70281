"""`report.html`: one file with the verdict of a run, its reason, and the evidence, from the top down.

The page is made only from the run's record, its document, and the ends of the node logs. It loads nothing, and its own security
policy forbids that. Every text from a history, a system or a log is hostile input: the template engine escapes it, or it is in
a data element that no content can close.
"""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect_right
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from harness.console import below
from harness.console.plain import capital, name
from harness.phases import beside_workload_s
from harness.targets import names_of
from harness.units import NS_PER_S
from results.circumstances.faults import circumstances
from results.circumstances.messages import NO_MESSAGES
from results.logs.lines import NO_LOGS, log_files, spans_of
from results.logs.since_start import since_start
from results.measure.leadership import leaders
from results.measure.series import bucket_s, latency_points, main_phase, quantile_lines, rate_lines, shades
from results.page import plots
from results.page.evidence import evidence
from results.page.example_picture import diagram
from results.page.fault_bands import bands
from results.page.leading import led
from results.page.marks import MAX_PICTURES, pictures
from results.page.pages import environment
from results.page.sequence import fault_text, sequence
from results.page.story import HEADS, LOG, at, differences, held, scene_of, story
from results.page.story_picture import picture as story_picture
from results.page.timeline import embedded, timeline
from results.page.topology import picture as cluster_picture
from results.record.counterexample import contradiction, counterexamples_of, is_of_register, operation_text
from results.stored.reading import shown_from
from results.words.bounds import (
    MAX_FAULTS,
    MAX_FUNCTIONS_SHOWN,
    MAX_NODES,
    MAX_ROWS,
    busiest,
    cut,
    first,
    label,
    shown_shades,
)
from results.words.formatting import availability as availability_line
from results.words.formatting import elections, pretty, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from jinja2 import Environment

    from harness.counterexample import Counterexample
    from harness.node_states import ClusterState
    from harness.op import Value
    from results.circumstances.messages import Nearby
    from results.logs.lines import Logs
    from results.page.story import Scene
    from results.record.record import RunRecord
    from results.store.store import Run

LOG_LINES = 60
LOG_BYTES = 16_384
MAX_DRAWN = 40
FEW = 5
MAX_KEY_PAGES = 100
KEY_PAGE = "key-"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The end of a node's log.

    Attributes:
        node: The node's name.
        name: The file's name.
        text: Its last lines.
        lines: Their number.
        size: The size of the whole file, as text.
        cut: Whether the file has more lines.
    """

    node: str
    name: str
    text: str
    lines: int
    size: str
    cut: bool


def plots_of(record: RunRecord) -> dict[str, tuple[str, str]]:
    """Draws the run's plots: those in the parts of the verdict (`results.page.marks`), latency, and rate.

    Returns:
        A plot's file name without its ending, to its title and its SVG; without latency and rate if no operation ended.
    """
    faults, of_faults = shown_shades(shades(record.faults))
    drawn = {}
    shown = pictures(record.parts)
    for number, picture in enumerate(shown[:MAX_PICTURES]):
        of_key = "" if picture.key is None else f" of key {label(picture.key)}"
        bounded = f"; the first {MAX_PICTURES} of {len(shown)} plots" if len(shown) > MAX_PICTURES else ""
        title = f"{label(picture.title)}{of_key}{bounded}{of_faults}"
        drawn[f"marks-{number + 1}" if number else "marks"] = title, plots.marks_svg(picture, faults)
    points, of_functions = busiest(latency_points(main_phase(record.operations), record.test.codes))
    if not points:
        return drawn
    width_s = bucket_s(max(float(group.time_s.max()) for group in points))
    bounded = of_functions + of_faults
    return drawn | {
        "latency-points": (f"Latency of every operation{bounded}", plots.latency_points_svg(points, faults)),
        "latency-quantiles": (
            f"Latency quantiles of ok operations, each {width_s:g} s{bounded}",
            plots.latency_quantiles_svg(quantile_lines(points, width_s), faults),
        ),
        "rate": (
            f"Operations per second, each {width_s:g} s{bounded}",
            plots.rate_svg(rate_lines(points, width_s), faults),
        ),
    }


def render(
    record: RunRecord,
    document: Mapping[str, Value],
    *,
    drawn: Mapping[str, tuple[str, str]],
    logs: Sequence[LogTail],
    lines: Logs = NO_LOGS,
    states: Sequence[ClusterState] = (),
    messages: Nearby = NO_MESSAGES,
) -> str:
    """Returns the page.

    Args:
        record: The run's record.
        document: The document of `results.json`, built from the same record.
        drawn: The plots, as `plots_of` returns them.
        logs: The ends of the node logs.
        lines: Lines of these logs with the time of the run.
        states: The states of simulated nodes at some moments, if `labrys explain` wrote them.
        messages: The messages of programs around the violation.
    """
    examples = counterexamples_of(record, str(document["reason"]))
    example = examples[0] if examples else None
    data = timeline(
        operations=record.operations,
        faults=record.faults,
        sightings=record.sightings,
        other_sightings=record.other_sightings,
        nodes=record.test.nodes,
        marked=[op.invoke_index for op in example.operations] if example else (),
        culprit=example.culprit.invoke_index if example and example.culprit else None,
        codes=record.test.codes,
        subjects=list({str(case.subject): case.subject for case in examples if case.subject is not None}.values()),
        lines=lines.lines,
        connections=record.connections,
    )
    names = key_names(examples)
    since = () if example is None else since_start(record, lines.since, scene_of(example).to_ns)
    said = shown_from(document)
    pages = first(names, MAX_KEY_PAGES)
    return (
        _pages()
        .get_template("report.html")
        .render(
            record=record,
            document=document,
            keys=len(names),
            availability=availability_line(document["availability"]),
            beside_s=beside_workload_s(record.phases),
            phases=sorted(record.phases, key=lambda phase: phase.start_s)[:MAX_ROWS],
            said=said,
            started=_started(record),
            faults=_faults(record, document, data["kinds"]),
            example=None if example is None else _example(example, record, pages),
            others=[_example(other, record, pages) for other in examples[1:MAX_DRAWN]],
            undrawn=[
                {"key": other.key, "explanation": other.explanation, "page": pages.get(str(other.key))}
                for other in examples[MAX_DRAWN:]
            ],
            few=FEW,
            most_pages=MAX_KEY_PAGES,
            most_functions=MAX_FUNCTIONS_SHOWN,
            story=None if example is None else _story(scene_of(example), record, states, lines),
            sequence=_sequence(messages, record, example),
            notes=lines.notes,
            evidence=[
                (piece, None if piece.scene is None else _story(piece.scene, record, states, lines))
                for piece in evidence(record, lines, since)
                if piece.verdict is said.verdict
            ],
            since=since,
            violations=document["violations"],
            plots=[
                {"title": title, "svg": Markup(plots.inlined(svg, prefix=name, title=title))}  # noqa: S704 - drawn by us
                for name, (title, svg) in drawn.items()
            ],
            logs=logs,
            shown=len(data["s"]),
            lanes_left_out=data["lanes_left_out"],
            logged=bool(data["logs"]),
            connected=data["connections"] is not None,
            most=MAX_ROWS,
            data=Markup(embedded(data)),  # noqa: S704 - cannot end its element
        )
    )


def key_names(examples: Sequence[Counterexample]) -> dict[str, str]:
    """Returns the name of the page of each key with a counterexample, in their order."""
    keys = list(dict.fromkeys(str(example.key) for example in examples if example.key is not None))
    return {key: f"{KEY_PAGE}{_file_name(key)}.html" for key in keys}


def _file_name(key: str) -> str:
    """Returns a legible file name that differs from those of other keys."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", key):
        return key
    legible = re.sub(r"[^A-Za-z0-9-]+", "_", key)[:40].strip("_") or "key"
    return f"{legible}.{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def key_pages(record: RunRecord, document: Mapping[str, Value], *, lines: Logs = NO_LOGS) -> Iterator[tuple[str, str]]:
    """Yields the page of each invalid key, as its file name and content: why it is invalid, and the operations on it."""
    examples = counterexamples_of(record, str(document["reason"]))
    names = list(key_names(examples).items())[:MAX_KEY_PAGES]
    template = _pages().get_template("key.html")
    for key, file in names:
        own = [example for example in examples if example.key is not None and str(example.key) == key]
        data = timeline(
            operations=[op for op in record.operations if op.key == own[0].key],
            faults=record.faults,
            sightings=record.sightings,
            other_sightings=record.other_sightings,
            nodes=record.test.nodes,
            marked=[op.invoke_index for example in own[:MAX_DRAWN] for op in example.operations],
            culprit=own[0].culprit.invoke_index if own[0].culprit else None,
            codes=record.test.codes,
            lines=lines.near([span for example in own[:MAX_DRAWN] for span in spans_of(example)]),
            connections=record.connections,
        )
        yield (
            file,
            template.render(
                record=record,
                document=document,
                key=key,
                started=_started(record),
                example=True,
                examples=[_example(example, record, {}) for example in own[:MAX_DRAWN]],
                more=max(0, len(own) - MAX_DRAWN),
                shown=len(data["s"]),
                lanes_left_out=data["lanes_left_out"],
                logged=bool(data["logs"]),
                connected=data["connections"] is not None,
                data=Markup(embedded(data)),  # noqa: S704 - cannot end its element
            ),
        )


def _pages() -> Environment:
    pages = environment(finalize=cut)
    pages.filters["capital"] = capital
    pages.filters["label"] = label
    pages.filters["first"] = first
    pages.filters["pretty"] = pretty
    pages.filters["elections"] = elections
    pages.filters["led"] = led
    return pages


def _started(record: RunRecord) -> str:
    return f"{record.test.started_utc.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def tails(run: Run) -> list[LogTail]:
    """Reads the ends of all node logs, a bounded part of each. For an unreadable file, the text is the reason."""
    return [_tail(run, path) for path in log_files(run)]


def _tail(run: Run, path: Path) -> LogTail:
    try:
        with below.open_file(run.path, path) as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - LOG_BYTES))
            text = file.read(LOG_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        text, length = f"(not read: {error.strerror})", 0
    lines = text.splitlines()
    if length > LOG_BYTES:
        lines = lines[1:]  # the first line is incomplete
    kept = lines[-LOG_LINES:]
    return LogTail(
        node=name(path.parent.name),
        name=name(path.name),
        text="\n".join(kept),
        lines=len(kept),
        size=size(length),
        cut=length > LOG_BYTES or len(lines) > LOG_LINES,
    )


def _faults(record: RunRecord, document: Mapping[str, Value], kinds: Sequence[str]) -> list[dict[str, Any]]:
    changes = {service: leaders(seen) for service, seen in record.all_sightings().items()}
    rows = []
    for fault, document_of_fault in islice(zip(record.faults, document["faults"], strict=True), MAX_FAULTS):
        led = changes[record.service_of(fault)]
        index = bisect_right(led, fault.start_ns, key=lambda change: change[0]) - 1
        leader = led[index][1] if index >= 0 else None
        availability = document_of_fault["availability"]
        shares = [
            {
                "name": label(node),
                "hit": node in fault.targets,
                "operations": pair["during"]["operations"],
                "refused": pair["during"]["refused"],
                "share": round(100 * pair["during"]["answered"] / pair["during"]["operations"])
                if pair["during"]["operations"]
                else 0,
            }
            for node, pair in first((availability or {"nodes": {}})["nodes"], MAX_NODES).items()
        ]
        rows.append(
            {
                **document_of_fault,
                "start_s": fault.start_ns / NS_PER_S,
                "end_s": fault.end_ns / NS_PER_S,
                "is_proven": fault.is_proven,
                "called": fault.planned.called,
                "target": "" if names_of(fault.planned.target) else str(fault.planned.target),
                "trigger": str(fault.planned.trigger or ""),
                "picture": cluster_picture(fault, record.test.nodes, leader),
                "colour": kinds.index(label(fault.planned.kind)) % len(plots.FAULT_COLOURS),
                "shares": shares,
            }
        )
    return rows


def _story(scene: Scene, record: RunRecord, states: Sequence[ClusterState], lines: Logs) -> dict[str, Any]:
    """Returns a violation in the order of time, for the page: a picture, the moments, and the states of the nodes."""
    moments = story(scene, record, states, lines.near(scene.spans))
    rows: list[dict[str, Any]] = []
    before: ClusterState | None = None
    for moment in moments:
        state = moment.state
        rows.append(
            {
                "time": at(moment.time_ns),
                "text": moment.text,
                "culprit": moment.culprit,
                "new": [] if state is None else differences(before, state),
                "held": [] if state is None else [held(node) for node in state.nodes],
            }
        )
        before = state or before
    exact = any(row["held"] for row in rows)
    logged = any(moment.kind == LOG for moment in moments)
    return {
        "picture": story_picture(moments, record.test.nodes),
        "rows": rows,
        "heads": HEADS,
        "exact": exact,
        "logged": logged,
    }


def _sequence(messages: Nearby, record: RunRecord, example: Counterexample | None) -> dict[str, Any] | None:
    """Returns the sequence diagram of the messages, for the page; None if there are none."""
    drawn = sequence(messages, record.test.nodes, example, record.faults)
    if drawn is None:
        return None
    picture, shown = drawn
    return {
        "picture": picture,
        "operations": shown.operations,
        "rest": replace(messages, left_out=messages.left_out + shown.left_out).rest,
        "faults": [
            {"id": fault.planned.id, "colour": fault.planned.id % len(plots.FAULT_COLOURS), "text": fault_text(fault)}
            for fault in shown.faults
        ],
    }


def _example(example: Counterexample, record: RunRecord, pages: Mapping[str, str]) -> dict[str, Any]:
    return {
        "key": example.key,
        "page": None if example.key is None else pages.get(str(example.key)),
        "explanation": example.explanation,
        "has_edges": bool(example.edges),
        "has_faults": bool(bands(example, record.faults)),
        "diagram": diagram(
            example, contradiction(example, record.operations) if is_of_register(record) else (), record.faults
        ),
        "around": circumstances(example, record),
        "rows": [
            {**asdict(op), "text": operation_text(op), "contact": str(op.contact or "")} for op in example.operations
        ],
    }
