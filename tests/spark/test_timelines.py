"""Timelines: Spark's aggregates equal the report's counts from the same operations."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from checker.formats.parquet import NAMES, values_of
from harness.faults import FaultRecord, PlannedFault
from harness.op import Operation, OpType
from harness.randomness import stream
from harness.units import NS_PER_S as S
from harness.watch import Sighting
from results.measure.availability import around, overall
from results.measure.leadership import Elections
from results.measure.op_outcomes import OUTCOMES, REFUSED, Codes, outcome
from results.measure.series import bucket_s, latency_points, latency_table, main_phase, quantile_lines, rate_lines
from results.page.drawing import draw
from results.pipeline.measure import timelines as t
from results.pipeline.measure.figures import figures
from results.pipeline.measure.trends import BY_OPERATIONS, BY_RUN, trends
from results.pipeline.schema import FAULTS, SIGHTINGS, VERDICTS, conform
from results.pipeline.schema import RUNS as RUN_COLUMNS
from results.pipeline.single.asked import asked_of
from results.pipeline.single.read import LAYOUT
from results.pipeline.single.timelines import timelines as of_one_run
from results.pipeline.write.gathered import gathered
from results.pipeline.write.page import PAGE, render
from results.pipeline.write.summary import Refusal, Summary
from results.store.document import counts
from tests.spark.histories import write_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from pyspark.sql import DataFrame, SparkSession

    from results.measure.availability import Window

pytestmark = pytest.mark.spark

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
            id=number, kind=random.choice(["kill", "pause"]), target="one", start_s=start_s, end_s=end_s
        )
        faults.append(FaultRecord(planned=planned, targets=["n1"], start_ns=start_s * S, end_ns=end_s * S, proof=None))
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
    return tuple(row[name] for name in names)


def told(window: Window) -> tuple[Any, ...]:
    """Returns the same fields of the report's window."""
    return as_window({name: getattr(window, name) for name in window.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Random runs, and Spark's aggregates of them."""

    runs: Mapping[str, list[Operation]]
    faults: Mapping[str, list[FaultRecord]]
    sightings: Mapping[str, list[Sighting]]
    tables: Mapping[str, DataFrame]
    rows: Mapping[str, Sequence[Any]]
    fault_table: DataFrame


@pytest.fixture(scope="module")
def case(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Makes the runs, and aggregates them once for all tests."""
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
    fault_rows = [
        (run, each.planned.id, each.planned.kind, ["n1"], each.start_ns, each.end_ns, None, None)
        for run, all_of in faults.items()
        for each in all_of
    ]
    seen_rows = [(run, s.time_ns, s.node, s.role, s.term, s.leader) for run, each in sightings.items() for s in each]
    fault_table = spark.createDataFrame(fault_rows, FAULTS)
    files = write_runs(tmp_path_factory.mktemp("timelines"), runs)
    tables = {
        name: table.localCheckpoint()
        for name, table in t.timelines(
            spark.read.parquet(*files),
            fault_table,
            runs=spark.createDataFrame(
                [(run, ["mismatch"], ["not-leader"]) for run in runs],
                "run string, answers array<string>, refusals array<string>",
            ),
            sightings=spark.createDataFrame(seen_rows, SIGHTINGS),
        ).items()
    }
    rows = {name: table.collect() for name, table in tables.items()}
    return Case(runs=runs, faults=faults, sightings=sightings, tables=tables, rows=rows, fault_table=fault_table)


def test_one_process_measures_the_same(case: Case) -> None:
    """Each row of each table equals the result from arrays of the run's operations, without Spark."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run, operations in case.runs.items():
        columns = [[run] * len(operations), *(values_of(operations, name) for name in NAMES[1:])]
        table = pa.table([pa.array(column, kind.type) for column, kind in zip(columns, LAYOUT, strict=True)], LAYOUT)
        faults = [
            {"fault": each.planned.id, "kind": each.planned.kind, "start_ns": each.start_ns, "end_ns": each.end_ns}
            for each in case.faults[run]
        ]
        sightings = [{name: getattr(each, name) for name in each.__slots__} for each in case.sightings[run]]
        asked = asked_of(table, ["mismatch"], ["not-leader"])
        for name, rows in of_one_run(asked, run=run, faults=faults, sightings=sightings, verdicts={}).items():
            found.setdefault(name, []).extend(rows)
    assert {name: comparable(rows) for name, rows in found.items()} == {
        name: comparable(row.asDict() for row in rows) for name, rows in case.rows.items()
    }


def comparable(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns rows as sorted texts."""

    def plain(name: str, value: Any) -> Any:
        return sorted(dict(value).items()) if name == "errors" else value

    return sorted(repr([(name, plain(name, value)) for name, value in sorted(row.items())]) for row in rows)


def windows_of(case: Case) -> dict[tuple[Any, ...], Any]:
    """Returns Spark's windows."""
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
            pairs: dict[tuple[str | None, str | None], Any] = {(None, None): (measured.during, measured.after)}
            pairs |= {(node, None): pair for node, pair in measured.nodes.items()}
            pairs |= {(None, f): pair for f, pair in measured.functions.items()}
            for (node, f), pair in pairs.items():
                for part, window in zip(("during", "after"), pair, strict=True):
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
    found = {(row["run"], row["fault"]): (row["rate_before"], row["rate_share"]) for row in whole}
    assert found == {address: pytest.approx(pair) for address, pair in expected.items()}
    assert any(pair[1] for pair in expected.values())
    assert not [row for row in rows if row not in whole and row["rate_before"] is not None]


def test_the_availability_of_a_run_is_that_of_the_report(case: Case) -> None:
    """Over the whole run: by the clients that measure it without refusals, and the number of operations with each outcome."""
    for run, operations in case.runs.items():
        whole = overall(operations, CODES)
        rows = [row for row in case.rows[t.TOTALS] if row["run"] == run]
        assert whole is not None
        told = {row["f"]: (row["asked"], row["answered"]) for row in rows if row["asked"]}
        assert told == {f: (each.operations, each.answered) for f, each in whole[1].items() if each.operations}
        assert tuple(map(sum, zip(*told.values(), strict=True))) == (whole[0].operations, whole[0].answered)
        by_f = counts(main_phase(operations), CODES)["by_f"]
        assert {row["f"]: {each: row[each] for each in OUTCOMES} for row in rows} == by_f
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


def test_keys_with_a_bad_verdict_are_shown_first(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    """With a limit of one key, the worst key is shown, and of equal keys the one with the most operations."""
    runs = dict(sorted(case.runs.items(), key=lambda each: -len(each[1]))[:3])
    judged: list[tuple[str, str | None, str]] = []
    expected = set()
    for (run, operations), verdict in zip(runs.items(), ("valid", "unknown", "invalid"), strict=True):
        count = Counter(op.key for op in main_phase(operations))
        least, *_, most = sorted(count, key=lambda key: (count[key], key))
        assert count[least] < count[most]
        judged += [(run, key, verdict if key == least else "valid") for key in count]
        expected.add((run, most if verdict == "valid" else least))
    verdicts = spark.createDataFrame(judged, "run string, key string, verdict string")
    rows = spark.read.parquet(*write_runs(tmp_path, runs))
    tables = t.timelines(rows, case.fault_table, t.TimelineOptions(shown_keys=1), verdicts=verdicts)
    assert {(row["run"], row["key"]) for row in tables[t.HEAT].collect()} == expected


def test_leaders_are_those_of_the_report(case: Case) -> None:
    """Spark counts changes, leaders and terms of whole runs and around faults by the report's own rule."""
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


def trend_rows(spark: SparkSession, case: Case) -> list[dict[str, Any]]:
    """Returns trends of the runs; the last run is invalid."""
    runs = [
        (run, f"2026-11-{n + 1:02}", f"2026-11-{n + 1:02}T00:00:00", "<b>nightly</b>", "sys", "1.0", "register", *said)
        for n, (run, said) in enumerate(zip(case.runs, itertools.chain(SAID, itertools.repeat(UNSAID)), strict=False))
    ]
    columns = (
        "run string, day string, started string, test string, system string, system_version string, workload string, "
        "said_recovery_s double, said_restarted boolean, said_recovery_error string"
    )
    last = list(case.runs)[-1]
    judged = [(run, "0", "invalid" if run == last else "valid", 10, "<i>because</i>") for run in case.runs]
    verdicts = spark.createDataFrame(
        judged, "run string, key string, verdict string, operations long, explanation string"
    )
    return compared(conform(spark.createDataFrame(runs, columns), RUN_COLUMNS), verdicts, case.tables)


def compared(runs: DataFrame, verdicts: DataFrame, tables: Mapping[str, DataFrame]) -> list[dict[str, Any]]:
    """Returns trends of some runs."""
    return trends(row.asDict() for row in figures(runs, verdicts, tables).collect())


def test_recovery_is_what_the_run_reports(spark: SparkSession, case: Case) -> None:
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
    windows = [(run, None, None, "after", 5, 5, ok_s) for run, ok_s in [*after, ("without faults", 9.0)]]
    windows[-1] = ("without faults", None, None, "during", 5, 5, 9.0)
    layout = "run string, node string, f string, part string, operations long, answered long, sustained_ok_s double"
    said = "said_recovery_s double, said_restarted boolean, said_recovery_error string"
    told = spark.createDataFrame(
        [(run, "t", "s", "2026-11-21", *each) for run, each in runs.items()],
        f"run string, test string, system string, started string, {said}",
    )
    rows = compared(
        conform(told, RUN_COLUMNS),
        spark.createDataFrame([], VERDICTS),
        {t.AVAILABILITY: spark.createDataFrame(windows, layout), t.TOTALS: case.tables[t.TOTALS]},
    )
    columns = ("recovery_s", "recovery_from", "restarted", "unrecovered")
    assert {row["run"]: tuple(row[name] for name in columns) for row in rows} == {
        "quick": (0.7, BY_RUN, False, 0),
        "restarted": (12.5, BY_RUN, True, 0),
        "dead": (None, BY_RUN, True, 1),
        "measured": (4.0, BY_OPERATIONS, None, 0),
        "unseen": (None, BY_OPERATIONS, None, 1),
        "without faults": (None, None, None, None),
    }


def test_the_page_shows_runs_and_escapes_them(spark: SparkSession, case: Case) -> None:
    """The page has the runs' pictures, loads nothing, and shows foreign names as text."""
    rows = trend_rows(spark, case)
    last = list(case.runs)[-1]
    told = {row["run"]: row for row in rows}
    assert told[last]["verdict"] == "invalid"
    assert "verdict" in told[last]["regressions"]
    found = Summary(
        out="out", runs=len(case.runs), read=0, operations=10, counts={"valid": 11, "invalid": 1}, quarantined=0,
        outcomes={"unexpected": 1},
        refuted=[{"run": last, "key": "<k>", "explanation": "<script>", "outcome": "unexpected"}], tables={},
        orders={"valid": 3, "invalid": 2}, misordered=[{"run": last, "key": None, "order_reason": "<s>no order</s>"}],
        undecided=[{"run": "<i>run-0</i>", "key": None, "explanation": None, "cause": "<u>no operation</u>"}],
        reasons=[Refusal(reason="<em>torn</em>", rows=2, source="file:/<s>", sources=2)],
    )  # fmt: skip
    verdicts = spark.createDataFrame([(last, "0", "invalid")], "run string, key string, verdict string")
    gather = partial(gathered, timelines=case.tables, faults=case.fault_table, verdicts=verdicts)
    files = render(found, rows, gather, lambda pictures: [draw(picture) for picture in pictures])
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
