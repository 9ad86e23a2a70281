"""Timelines: the tables of a run equal the report's counts from the same operations, in one slice and in many."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from checker.formats.parquet import NAMES, values_of
from checker.judging import UNPROMISED
from harness.faults import FaultRecord, PlannedFault
from harness.op import Operation, OpType
from harness.randomness import stream
from harness.targets import AllNodes
from harness.units import NS_PER_S as S
from harness.verdict import Verdict
from harness.watch import Sighting
from results.measure.availability import around, overall
from results.measure.leadership import Elections
from results.measure.op_outcomes import OUTCOMES, REFUSED, Codes, outcome
from results.measure.series import bucket_s, latency_points, latency_table, main_phase, quantile_lines, rate_lines
from results.page.drawing import draw
from results.pipeline import schema as t
from results.pipeline.measure import spans, timelines
from results.pipeline.measure.figures import figures
from results.pipeline.measure.timelines import Subject, shown_keys
from results.pipeline.measure.trends import BY_OPERATIONS, BY_RUN, trends
from results.pipeline.write.gathered import gathered
from results.pipeline.write.output import Manifest
from results.pipeline.write.page import PAGE, render
from results.pipeline.write.summary import Refusal, Summary, summary
from results.stored.document import counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from results.measure.availability import Window
    from results.pipeline.write.tables import Reading

RUNS = 20
CODES = Codes(answers={"mismatch"}, refusals={"not-leader"})


def some_operations(random: Random, count: int) -> list[Operation]:
    """Returns operations with ties, outages, schedules, errors and a final phase, in the order of their invokes."""
    operations = []
    time_ns = 0
    follow = random.random() < 0.5
    for index in range(count):
        time_ns += random.choice([0, S // 100, S // 20, S // 5, random.randrange(S)])
        bad = (time_ns // (5 * S)) % 2 == 1
        kind = random.choice([OpType.OK, OpType.FAIL, OpType.INFO]) if bad or random.random() < 0.04 else OpType.OK
        operations.append(
            Operation(
                process=index % 7,
                f=random.choice(["read", "write"]),
                value=None,
                result=None,
                type=kind,
                start_ns=time_ns,
                end_ns=None if kind is OpType.INFO and random.random() < 0.5 else time_ns + random.randrange(S),
                invoke_index=2 * index,
                complete_index=2 * index + 1,
                key=str(index % 3),
                node=random.choice(["n1", "n2", None]),
                via=random.choice(["n1", "n2", None]) if follow else None,
                error=None
                if kind is OpType.OK
                else random.choice(["mismatch", " mismatch : was 3", "timeout: 1 s", "not-leader: n2 leads", None]),
                scheduled_ns=random.choice([None, max(0, time_ns - random.randrange(S))]),
                phase="final" if index > count - 5 else None,
            )
        )
    return operations


def some_faults(random: Random) -> list[FaultRecord]:
    """Returns faults that may overlap, touch, never begin or outlast the run."""
    faults = []
    for number in range(random.randrange(5)):
        start_s = random.randrange(30)
        end_s = start_s + random.choice([0, 3, 5, 10, 60])
        planned = PlannedFault(
            id=number, kind=random.choice(["kill", "pause"]), target=AllNodes(), start_s=start_s, end_s=end_s
        )
        faults.append(FaultRecord(planned=planned, targets=("n1",), start_ns=start_s * S, end_ns=end_s * S, proof=None))
    return faults


def as_window(row: Any) -> tuple[Any, ...]:
    """Returns a row's fields of a window."""
    names = (
        "start_s",
        "end_s",
        "operations",
        "answered",
        "refused",
        "first_ok_s",
        "sustained_ok_s",
        "longest_gap_s",
        "errors",
    )
    return tuple(dict(row[name]) if name == "errors" else row[name] for name in names)


def told(window: Window) -> tuple[Any, ...]:
    """Returns the same fields of the report's window."""
    return as_window({name: getattr(window, name) for name in window.__struct_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Random runs, and their timelines."""

    runs: Mapping[str, list[Operation]]
    faults: Mapping[str, list[FaultRecord]]
    sightings: Mapping[str, list[Sighting]]
    rows: Mapping[str, Sequence[Any]]


def table_of(run: str, operations: Sequence[Operation]) -> pa.Table:
    """Returns operations in the columns of the table of operations."""
    columns = [[run] * len(operations), *(values_of(operations, name) for name in NAMES[1:])]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, t.OPERATIONS.types, strict=True)]
    return pa.table(arrays, schema=t.OPERATIONS)


def random_runs() -> Case:
    """Returns runs without timelines."""
    random = stream(5, "timelines")
    runs = {f"run-{number}": some_operations(random, random.choice([6, 30, 200])) for number in range(RUNS)}
    faults = {run: some_faults(random) for run in runs}
    roles = ["leader", "follower", None]
    sightings = {
        run: [
            Sighting(time_ns=n * S, node=random.choice(["n1", "n2"]), role=random.choice(roles), term=n // 4)
            for n in range(20)
        ]
        for run in runs
    }
    return Case(runs=runs, faults=faults, sightings=sightings, rows={})


def subject_of(case: Case, run: str) -> Subject:
    """Returns a run to measure, with all of its keys in `heat`."""
    faults = [
        {"fault": fault.planned.id, "kind": fault.planned.kind, "start_ns": fault.start_ns, "end_ns": fault.end_ns}
        for fault in case.faults[run]
    ]
    sightings = [{name: getattr(sighting, name) for name in sighting.__slots__} for sighting in case.sightings[run]]
    return Subject(
        run=run,
        faults=faults,
        sightings=sightings,
        answers=["mismatch"],
        refusals=["not-leader"],
        shown=["0", "1", "2"],
    )


@pytest.fixture(scope="module", params=[1 << 21, 20, 1])
def case(request: pytest.FixtureRequest) -> Case:
    """Measures the runs once for all tests; a slice has about as many operations as the parameter says."""
    made = random_runs()
    rows: dict[str, list[Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "SLICE_ROWS", request.param)
        for run, operations in made.runs.items():
            table = table_of(run, operations)
            span = spans.span_of(table)
            assert span is None or request.param > 200 or len(operations) < 200 or span.slices > 2
            for name, own_rows in timelines.measured(subject_of(made, run), table).items():
                rows.setdefault(name, []).extend(own_rows)
    return Case(runs=made.runs, faults=made.faults, sightings=made.sightings, rows=rows)


def windows_of(case: Case) -> dict[tuple[Any, ...], Any]:
    """Returns the windows of all runs."""
    return {
        (row["run"], row["fault"], row["part"], row["node"], row["f"]): (as_window(row), row["overlaps"])
        for row in case.rows[t.AVAILABILITY]
    }


def test_availability_is_that_of_the_report(case: Case) -> None:
    """Each window of each fault, for all clients, for those of each node, and for each function, has the report's numbers."""
    expected: dict[tuple[Any, ...], Any] = {}
    for run, operations in case.runs.items():
        faults = case.faults[run]
        for fault, measured in zip(faults, around(faults, operations, CODES), strict=True):
            if measured is None:
                continue
            pairs: dict[tuple[str | None, str | None], Any] = {(None, None): measured}
            pairs |= {(node, None): pair for node, pair in measured.nodes.items()}
            pairs |= {(None, f): pair for f, pair in measured.by_f.items()}
            for (node, f), pair in pairs.items():
                for part, window in (("during", pair.during), ("after", pair.after)):
                    if window is not None:
                        expected[run, fault.planned.id, part, node, f] = (told(window), sorted(measured.overlaps))
    assert len(expected) > 50
    assert windows_of(case) == expected


def test_rates_beside_faults_are_those_of_the_report(case: Case) -> None:
    """The rate of answers before each fault and the share left during it are the report's. Nodes and functions have none."""
    expected = {
        (run, fault.planned.id): (measured.rate_before, measured.rate_share)
        for run, operations in case.runs.items()
        for fault, measured in zip(case.faults[run], around(case.faults[run], operations, CODES), strict=True)
        if measured is not None
    }
    rows = [row for row in case.rows[t.AVAILABILITY] if row["part"] == "during"]
    whole = [row for row in rows if row["node"] is None and row["f"] is None]
    rates = {(row["run"], row["fault"]): (row["rate_before"], row["rate_share"]) for row in whole}
    assert rates == {address: pytest.approx(pair) for address, pair in expected.items()}
    assert any(pair[1] for pair in expected.values())
    assert not [row for row in rows if row not in whole and row["rate_before"] is not None]


def test_the_availability_of_a_run_is_that_of_the_report(case: Case) -> None:
    """Over the whole run: by the clients that measure it without refusals, and the number of operations with each outcome."""
    for run, operations in case.runs.items():
        whole = overall(operations, CODES)
        rows = [row for row in case.rows[t.TOTALS] if row["run"] == run]
        assert whole is not None
        told = {row["f"]: (row["asked"], row["answered"]) for row in rows if row["asked"]}
        assert told == {
            f: (window.operations, window.answered) for f, window in (whole.by_f or {}).items() if window.operations
        }
        assert tuple(map(sum, zip(*told.values(), strict=True))) == (whole.operations, whole.answered)
        by_f = counts(main_phase(operations), CODES).by_f
        assert {row["f"]: {kind: row[kind] for kind in OUTCOMES} for row in rows} == by_f
    assert sum(row[REFUSED] for row in case.rows[t.TOTALS]) > 20


def test_rates_and_quantiles_are_those_of_the_report(case: Case) -> None:
    """Buckets, counts and quantiles, over time and over the whole run, are those of the report's plots."""
    for run, operations in case.runs.items():
        main = [op for op in main_phase(operations) if op.end_ns is not None]
        points = latency_points(main, CODES)
        width_s = bucket_s(
            max(op.start_ns if op.scheduled_ns is None else op.scheduled_ns for op in main_phase(operations)) / S
        )

        def place(row: Any) -> int:
            return int(round(row["time_s"] / width_s))  # noqa: B023, RUF046 - called at once; a row's fields are Any

        rates = {
            (line.f, line.name, bucket): round(float(value * width_s))
            for line in rate_lines(points, width_s)
            for bucket, value in enumerate(line.value)
            if value
        }
        without_end = sum(op.end_ns is None for op in main_phase(operations))
        found: dict[Any, int] = {}
        for row in (row for row in case.rows[t.RATES] if row["run"] == run):
            assert row["width_s"] == width_s
            at = (row["f"], row["type"], place(row))
            found[at] = found.get(at, 0) + row["operations"]
        assert sum(found.values()) == sum(rates.values()) + without_end
        assert all(found[at] >= count for at, count in rates.items())
        assert {at: n for at, n in found.items() if at[1] != "info"} == {
            at: n for at, n in rates.items() if at[1] != "info"
        }
        quantiles = {
            (line.f, line.name, int(time_s // width_s)): pytest.approx(value)
            for line in quantile_lines(points, width_s)
            for time_s, value in zip(line.time_s, line.value, strict=True)
            if value > 0
        }
        assert {
            (row["f"], name, place(row)): row[f"{name}_ms"]
            for row in case.rows[t.LATENCIES]
            if row["run"] == run
            for name in ("p50", "p95", "p99", "max")
        } == quantiles
        totals = {row["f"]: row for row in case.rows[t.TOTALS] if row["run"] == run}
        for f, by_name in latency_table(points).items():
            assert {name: round(totals[f][name], 3) for name in by_name} == by_name


def test_concurrency_and_keys_count_every_operation(case: Case) -> None:
    """An operation is open from its start to its end. Each operation that is not refused is in one cell of its key."""
    for run, operations in case.runs.items():
        main = main_phase(operations)
        for row in (row for row in case.rows[t.CONCURRENCY] if row["run"] == run):
            at_ns = round(row["time_s"] * S)
            assert row["open"] == sum(op.start_ns <= at_ns and (op.end_ns is None or op.end_ns > at_ns) for op in main)
        asked = [op for op in main if outcome(op.type, op.error, CODES) != REFUSED]
        assert sum(row["operations"] for row in case.rows[t.HEAT] if row["run"] == run) == len(asked)


def test_keys_with_a_bad_verdict_are_shown_first() -> None:
    """The worst keys are shown, and of equal keys those with the most operations; a key without a verdict is unknown."""
    counts = [(f"k{number:02}", 100 + number) for number in range(60)]
    verdicts: dict[str | None, str] = dict.fromkeys((key for key, _ in counts), "valid")
    verdicts |= {"k03": "invalid", "k05": "invalid"}
    del verdicts["k04"]
    assert shown_keys(counts, verdicts) == ["k05", "k03", "k04", *(f"k{number:02}" for number in range(59, 22, -1))]


def test_quantiles_of_a_long_run_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """With several slices, the rank of a quantile of the run differs by at most a ten-thousandth of its operations."""
    count = 60_000
    monkeypatch.setattr(spans, "SLICE_ROWS", count // 3)
    operations = [
        Operation(
            process=0,
            f="read",
            value=None,
            result=None,
            type=OpType.OK,
            start_ns=index * S // 1000,
            end_ns=index * S // 1000 + 1_000_000 * (1 + index * 7919 % count),
            invoke_index=2 * index,
            complete_index=2 * index + 1,
        )
        for index in range(count)
    ]
    [row] = timelines.measured(Subject(run="r"), table_of("r", operations))[t.TOTALS]
    for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)):
        assert abs(row[name] - share * count) <= count / 10_000
    assert (row["max_ms"], row["ok"]) == (count, count)


def test_leaders_are_those_of_the_report(case: Case) -> None:
    """The table has changes, leaders and terms of whole runs and around faults by the report's own rule."""
    windows = windows_of(case)
    assert len(case.rows[t.LEADERS]) > len(case.runs)
    for row in case.rows[t.LEADERS]:
        stretch: tuple[int | None, int | None] = (None, None)
        if row["part"] is not None:
            window = windows[row["run"], row["fault"], row["part"], None, None][0]
            stretch = (round(window[0] * S), round(window[1] * S))
        led = Elections(case.sightings[row["run"]]).within(*stretch)
        assert (row["changes"], row["leaders"], row["terms"]) == (led.changes, led.leaders, led.terms)


UNSAID = (None, None, None)
SAID = [(0.7, False, None), (12.5, True, None), (60.0, True, "<b>no leader</b>")]


def reading(**tables: Sequence[Mapping[str, Any]]) -> Reading:
    """Returns the function that reads these tables."""

    def read(name: str, columns: Sequence[str], /, **where: Sequence[str]) -> pa.Table:
        rows = [
            {column: row.get(column) for column in columns}
            for row in tables.get(name, ())
            if all(row.get(column) in texts for column, texts in where.items())
        ]
        return pa.Table.from_pylist(rows, pa.schema([t.TABLES[name].field(column) for column in columns]))

    return read


def judged_runs(case: Case) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Returns the tables of the runs; the last run is invalid."""
    columns = ("run", "day", "started", "test", "system", "system_version", "workload")
    said = ("said_recovery_s", "said_restarted", "said_recovery_error")
    runs = [
        dict(
            zip(
                (*columns, *said),
                (
                    run,
                    f"2026-11-{n + 1:02}",
                    f"2026-11-{n + 1:02}T00:00:00",
                    "<b>nightly</b>",
                    "sys",
                    "1.0",
                    "register",
                    *told,
                ),
                strict=True,
            )
        )
        for n, (run, told) in enumerate(zip(case.runs, itertools.chain(SAID, itertools.repeat(UNSAID)), strict=False))
    ]
    last = list(case.runs)[-1]
    verdicts = [
        {"run": run, "key": "0", "verdict": "invalid" if run == last else "valid", "operations": 10}
        for run in case.runs
    ]
    faults = [
        {"run": run, "kind": fault.planned.kind, "start_ns": fault.start_ns, "end_ns": fault.end_ns}
        for run, its in case.faults.items()
        for fault in its
    ]
    return {**case.rows, "runs": runs, "verdicts": verdicts, "faults": faults}


def test_recovery_is_what_the_run_reports(case: Case) -> None:
    """The trends show a run's own measurement of its recovery. Only a run without one is measured from its operations."""
    runs = {
        "quick": (0.7, False, None),
        "restarted": (12.5, True, None),
        "dead": (60.0, True, "no leader"),
        "measured": UNSAID,
        "unseen": UNSAID,
        "without faults": UNSAID,
    }
    after = [("quick", None), ("quick", 3.0), ("dead", 2.0), ("measured", 1.0), ("measured", 4.0), ("unseen", None)]
    windows: list[dict[str, Any]] = [{"run": run, "part": "after", "sustained_ok_s": ok_s} for run, ok_s in after]
    windows.append({"run": "without faults", "part": "during", "sustained_ok_s": 9.0})
    said = ("said_recovery_s", "said_restarted", "said_recovery_error")
    told = [
        {"run": run, "test": "t", "system": "s", "started": "2026-11-21", **dict(zip(said, values, strict=True))}
        for run, values in runs.items()
    ]
    rows = trends(figures(reading(runs=told, availability=windows)))
    columns = ("recovery_s", "recovery_from", "restarted", "unrecovered")
    assert {row["run"]: tuple(row[name] for name in columns) for row in rows} == {
        "quick": (0.7, BY_RUN, False, 0),
        "restarted": (12.5, BY_RUN, True, 0),
        "dead": (None, BY_RUN, True, 1),
        "measured": (4.0, BY_OPERATIONS, None, 0),
        "unseen": (None, BY_OPERATIONS, None, 1),
        "without faults": (None, None, None, None),
    }


def test_a_key_without_a_promise_hides_no_verdict(case: Case) -> None:
    """A run is unknown only if no key promised anything, and so is a job."""
    tables = judged_runs(case)
    runs = list(case.runs)[:2]
    unknown: dict[str, Any] = {"verdict": "unknown", "cause": UNPROMISED, "operations": 3}
    valid: dict[str, Any] = {"verdict": "valid", "cause": None, "operations": 5}
    said = [{"run": runs[0], **valid}, {"run": runs[0], **unknown}, {"run": runs[1], **unknown}]
    rows = {row["run"]: row for row in figures(reading(**{**tables, "verdicts": said}))}
    assert [rows[run]["severity"] for run in runs] == [Verdict.VALID.severity, Verdict.UNKNOWN.severity]
    assert (rows[runs[0]]["keys"], rows[runs[0]]["operations"]) == (2, 8)
    for keys, unpromised, verdict in [
        (said[:2], 1, Verdict.VALID),
        (said, 1, Verdict.UNKNOWN),
        (said[1:], 0, Verdict.UNKNOWN),
    ]:
        total = summary(reading(verdicts=keys), "out", Manifest())
        assert (total.counts["unknown"], total.unpromised, total.verdict) == (
            len(keys) - (keys[0] == said[0]),
            unpromised,
            verdict,
        )


def test_the_page_shows_runs_and_escapes_them(case: Case) -> None:
    """The page has the runs' pictures, loads nothing, and shows foreign names as text."""
    read = reading(**judged_runs(case))
    rows = trends(figures(read))
    last = list(case.runs)[-1]
    told = {row["run"]: row for row in rows}
    assert told[last]["verdict"] == "invalid"
    assert "verdict" in told[last]["regressions"]
    whole = Summary(
        out="out", runs=len(case.runs), read=0, operations=10, counts={"valid": 11, "invalid": 1}, quarantined=0,
        outcomes={"unexpected": 1},
        refuted=[{"run": last, "key": "<k>", "explanation": "<script>", "outcome": "unexpected"}], tables={},
        orders={"valid": 3, "invalid": 2}, misordered=[{"run": last, "key": None, "order_reason": "<s>no order</s>"}],
        undecided=[{"run": "<i>run-0</i>", "key": None, "explanation": None, "cause": "<u>no operation</u>"}],
        reasons=[Refusal(reason="<em>torn</em>", rows=2, source="file:/<s>", sources=2)],
    )  # fmt: skip
    files = render(whole, rows, partial(gathered, read), lambda pictures: [draw(picture) for picture in pictures])
    page = files[PAGE].decode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>nightly" not in page
    assert "<b>&lt;i&gt;run-0&lt;/i&gt;</b>: &lt;u&gt;no operation" in page
    assert "2 rows of file:/&lt;s&gt; and 1 other file: &lt;em&gt;torn" in page
    assert "legal on 3, illegal on 2, unknown on 0." in page
    assert "&lt;s&gt;no order&lt;/s&gt;" in page
    assert "The table of verdicts has 1 more such key." in page
    assert all(said in page for said in ("after a restart", "not recovered"))
    assert not re.search(r'(src|href)="(?!#)', page)
    assert {"trend-1.svg", "faults.svg", "run-1-rate.svg", "run-1-latency.svg", "run-1-keys.svg"} <= set(files)
    assert not [name for name in files if name.endswith(".png")]
