"""One rule counts the outcomes of operations, wherever Labrys shows a number of them."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from rich.console import Console

from checker.formats.parquet import NAMES, values_of
from harness.op import Op, OpType
from results.live.progress import Progress
from results.live.tail import Tail
from results.measure.measures import measure
from results.measure.op_outcomes import OUTCOMES, REFUSED, Codes
from results.measure.series import latency_points, rate_lines
from results.page.report import render
from results.page.timeline import timeline
from results.pipeline.measure.timelines import Subject, measured
from results.pipeline.schema import OPERATIONS
from results.stored.document import build
from results.words.formatting import outcomes

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord

CODES = Codes(refusals=frozenset({"not-leader"}))


@pytest.fixture(scope="module")
def refused_record(valid_record: RunRecord) -> RunRecord:
    """A run in which every third operation is refused, and every seventh fails."""
    kept = [op for op in valid_record.operations if op.phase is None and op.end_ns is not None]
    operations = [
        replace(op, type=OpType.FAIL, error="not-leader: n3 leads")
        if index % 3 == 0
        else replace(op, type=OpType.FAIL, error="no-leader")
        if index % 7 == 0
        else replace(op, type=OpType.OK, error=None)
        for index, op in enumerate(kept)
    ]
    return replace(
        valid_record, operations=operations, test=replace(valid_record.test, answers=(), refusals=("not-leader",))
    )


def expected(record: RunRecord) -> Counter[str]:
    """Returns the number of operations with each outcome."""
    return Counter(
        "refused" if op.error == "not-leader: n3 leads" else str(op.type) for op in record.operations
    )  # fmt: skip


def test_every_count_of_a_run_is_the_same(refused_record: RunRecord, tmp_path: Path) -> None:
    """In results.json, thresholds, the plots and the timeline, the progress, the live view, and `labrys analyze`."""
    record, count = refused_record, expected(refused_record)
    assert count["refused"] > 300 < count["ok"]
    assert count["fail"] > 100
    document = build(record)
    by_source: dict[str, Counter[str]] = {
        "results.json": Counter({kind: document["counts"][kind] for kind in OUTCOMES}),
        "by function": sum((Counter(by) for by in document["counts"]["by_f"].values()), Counter()),
        "thresholds": Counter({kind: int(measure(document, kind) or 0) for kind in OUTCOMES}),
    }
    by_source["thresholds by function"] = Counter(
        {kind: int(sum(measure(document, kind, f) or 0 for f in document["counts"]["by_f"])) for kind in OUTCOMES}
    )
    points = latency_points(record.operations, CODES)
    by_source["plot of latency"] = sum((Counter({point.outcome: point.time_s.size}) for point in points), Counter())
    by_source["plot of rates"] = sum(
        (Counter({line.name: round(float(line.value.sum()))}) for line in rate_lines(points, 1.0)), Counter()
    )
    data = timeline(operations=record.operations, faults=(), sightings=(), nodes=record.test.nodes, codes=CODES)
    by_source["timeline"] = Counter(OUTCOMES[kind] for kind in data["t"])
    ops = [Op(n, n, op.type, n, op.f, error=op.error) for n, op in enumerate(record.operations)]
    progress = Progress(console=Console(file=io.StringIO()), ops=ops, time_limit_s=60, codes=CODES)
    progress.line()
    by_source["progress"] = Counter(progress.counts)
    tail = Tail(tmp_path / "history.jsonl", CODES)
    tail.path.write_text(
        "".join(
            f'{{"index": 1, "time": 1, "type": "{op.type}", "process": 1, "f": "r", "value": null, '
            f'"error": {quoted(op.error)}}}\n'
            for op in record.operations
        )
    )
    tail.read()
    by_source["live view"] = Counter(tail.counts)
    columns = [["r"] * len(record.operations), *(values_of(record.operations, name) for name in NAMES[1:])]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, OPERATIONS.types, strict=True)]
    tables = measured(Subject(run="r", refusals=("not-leader",)), pa.table(arrays, schema=OPERATIONS))
    by_source["analyze, totals"] = Counter({kind: sum(row[kind] for row in tables["totals"]) for kind in OUTCOMES})
    by_source["analyze, rates"] = sum(
        (Counter({row["type"]: row["operations"]}) for row in tables["rates"]), Counter()
    )  # fmt: skip
    assert {name: +counts for name, counts in by_source.items()} == dict.fromkeys(by_source, count)


def quoted(error: str | None) -> str:
    """Returns an error as JSON."""
    return "null" if error is None else f'"{error}"'


def test_the_report_counts_refusals_apart_in_its_header_and_its_table(refused_record: RunRecord) -> None:
    """A table of functions has a column of refusals, and the failures do not contain them."""
    document = build(refused_record)
    page = render(refused_record, document, drawn={}, logs=[])
    assert outcomes(document["counts"]) in page
    table = page[page.index('id="performance"') :]
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", table[: table.index("</thead>")])
    rows = re.findall(r"<tr><td>(\w+)</td>(.*?)</tr>", table[: table.index("</table>")], flags=re.DOTALL)
    shown = {f: dict(zip(heads[1:], re.findall(r"<td[^>]*>([^<]*)</td>", cells), strict=True)) for f, cells in rows}
    by_f = document["counts"]["by_f"]
    assert {f: {kind: int(shown[f][kind].replace(",", "")) for kind in OUTCOMES} for f in shown} == by_f
    assert REFUSED in heads
