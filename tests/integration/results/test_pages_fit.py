"""Each kind of page, at three widths: nothing is cut off, covered or squeezed. `layout.py` has the rules."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from click.testing import CliRunner

import cli
from commands.run.repeating import Repetition, Tally, document_of
from harness.errors import ExitCode
from harness.faults import FaultRecord, PlannedFault
from harness.op import OpType
from harness.outcome import RunOutcome
from harness.reached import recovered
from harness.recovery import Recovery
from harness.targets import AllNodes
from harness.watch import Positions
from results.live.serve import StoreServer
from results.pipeline.options import AnalysisOptions
from results.publish import announce, publish
from results.record.record import WORLD
from results.repeats import RepeatFolder
from results.store.store import Run, Store
from tests.examples import SIMULATED
from tests.integration.results.browser import CHROMIUM
from tests.integration.results.layout import faults_of_layout
from tests.spark.runs import in_one_process
from tests.unit.results.stored import suite_document, write_history, write_logs
from tests.unit.results.synthetic import NODES, record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from results.record.record import RunRecord
    from tests.integration.results.browser import Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

WIDTHS = (1400, 1000, 700)
FAULTS = 395
KINDS = ("partition-majorities-ring", "kill", "pause", "packet-delay-of-clients")
SUITE = "openchaos-of-a-whole-night"
CASE = "partitions-and-kills_nemesis_partition-halves_partition-leader_kill_minority_pause_majority"
CLIENTS = 14
HARSH = "the store at /var/lib/labrys/dead_kv/registers.json has a checksum that does not fit its content. "
S = 10**9


def with_many_faults(made: RunRecord) -> RunRecord:
    """Returns the run with so many faults, of four kinds in turn, as a long run in virtual time has."""
    first, *_ = made.faults
    step_ns = int(made.duration_s * S) // (FAULTS + 20)
    more = [
        FaultRecord(
            planned=PlannedFault(
                id=number, kind=KINDS[number % 4], target=AllNodes(),
                start_s=number * step_ns / S, end_s=(number + 3) * step_ns / S,
            ),
            targets=NODES if number % 4 == 0 else (NODES[number % 5],),
            start_ns=number * step_ns,
            end_ns=(number + 3) * step_ns,
            proof=first.proof,
        )
        for number in range(len(made.faults), FAULTS)
    ]  # fmt: skip
    return replace(made, faults=[*made.faults, *more])


def with_many_lanes(made: RunRecord) -> RunRecord:
    """Returns the run with so many operations at once that the timeline has more lanes than a window has room for."""
    slow = [
        replace(operation, process=1000 + number, end_ns=operation.start_ns + 30 * S)
        for number, operation in enumerate(made.operations)
        if number % 5 == 0
    ]
    return replace(
        made, operations=[*(operation for number, operation in enumerate(made.operations) if number % 5), *slow]
    )


def unrecovered(made: RunRecord) -> RunRecord:
    """Returns the run with an invalid `recovered`, polls of each node, and errors of the clients with long texts."""
    late = [
        replace(operation, type=OpType.INFO, result=None, error=f"status-504: {HARSH}")
        for operation in made.operations[-200:]
        if operation.end_ns is not None
    ]
    first = "\n".join(
        [f"within 30 s, none of 149 operations was answered: {HARSH}", *("--- last lines", HARSH * 3) * 3]
    )
    part = recovered(
        Recovery(
            seconds=33.0,
            restarted=True,
            from_s=40.0,
            restarted_s=50.0,
            first_error=first,
            error=None,
            quorum=2,
            nodes=3,
        )
    )
    times_ns = [second * S for second in range(60)]
    applied = {node: [min(1601, index * number) for index in range(60)] for number, node in enumerate(NODES, 10)}
    return replace(
        made,
        operations=[*made.operations[:-200], *late],
        parts=[part],
        positions=Positions(time_ns=times_ns, applied=applied),
    )


def explained(root: Path) -> Run:
    """Runs a planted bug in the simulator, and explains it: the report has the states of the nodes and lines of their logs."""
    where = ["--store", str(root / "explained")]
    faults = ["--nemesis", "partition-random-halves", "--fault-on", "1-2", "--fault-off", "1-1", "--fault-quiet", "1-1"]
    arguments = [
        "test",
        "--seed",
        "1",
        "--cluster",
        "sim",
        "--system",
        SIMULATED,
        "--bug",
        "half-is-majority",
        *faults,
    ]
    arguments += ["--rate", "5", "--time-limit", "8"]
    assert CliRunner().invoke(cli.labrys, [*arguments, *where]).exit_code == ExitCode.INVALID
    assert CliRunner().invoke(cli.labrys, ["explain", "latest", *where]).exit_code == ExitCode.VALID
    run = Store(root / "explained").open_run("latest")
    assert '<rect class="log"' in run.report_html.read_text()
    return run


def write_transcripts(run: Run, made: RunRecord) -> None:
    """Writes messages around the violation: many clients at the same time, and nodes that tell each other."""
    ops = made.parts[0].details["counterexample"]["operations"]
    first_s, last_s = ops[-1]["start_ns"] / S, ops[-1]["end_ns"] / S
    lines: dict[str, list[str]] = {node: [] for node in NODES}
    for number in range(CLIENTS):
        node, other = NODES[number % 5], NODES[(number + 1) % 5]
        body = {"type": "write", "key": "a key with a long name", "value": [number] * 8, "msg_id": 1}
        asked = {"src": f"client-{number}", "dest": node, "body": body}
        told = {"src": node, "dest": other, "body": {"type": "append", "entries": [body] * 3}}
        answer = {"src": node, "dest": f"client-{number}", "body": {"type": "write_ok", "in_reply_to": 1}}
        share = (last_s - first_s) / (CLIENTS + 1)
        lines[node].append(f"{first_s + share * number:.6f} > {json.dumps(asked)}")
        lines[node].append(f"{first_s + share * (number + 0.3):.6f} < {json.dumps(told)}")
        lines[other].append(f"{first_s + share * (number + 0.6):.6f} > {json.dumps(told)}")
        lines[node].append(f"{last_s - share * (CLIENTS - number) / CLIENTS:.6f} < {json.dumps(answer)}")
    for node, messages in lines.items():
        (run.nodes_dir / node / "messages.log").write_text("".join(f"{line}\n" for line in sorted(messages)))


def add_run(store: Store, made: RunRecord, name: str) -> Run:
    """Stores a run under this name, with its logs and its messages."""
    renamed = replace(made, test=replace(made.test, name=name), timings={**made.timings, WORLD: 0.0})
    run = store.create_run(name, renamed.test.started_utc)
    announce(run, renamed.test)
    write_history(run, renamed)
    write_logs(run)
    if made.parts[0].details.get("counterexample"):
        write_transcripts(run, renamed)
    publish(run, renamed)
    store.finish(run)
    return run


def copy_of(store: Store, run: Run, name: str, day: int) -> Run:
    """Stores a copy of a run under another name, as if it had begun days later."""
    copy = store.root / name / f"202608{day:02}T101112.123Z"
    shutil.copytree(run.path, copy)
    return Run(copy)


def add_suite(store: Store, run: Run, reason: str) -> str:
    """Stores a suite with long names and long reasons, and returns the address of its page."""
    document = suite_document(suite=SUITE)
    names = {letter: f"{CASE}-{letter}" for letter in "abcd"}
    more = {
        "run": str(run.path),
        "why": reason,
        "reproduce": f"labrys suite suites/{SUITE}.toml --only '{CASE}-b' --seed 19",
    }
    document["cases"] = document["selected"] = list(names.values())
    document["running"] = [names["c"]]
    document["results"] = {names[letter]: {**result, **more} for letter, result in document["results"].items()}
    folder = store.root / "suites" / SUITE / "20260729T000000.000Z"
    folder.mkdir(parents=True)
    (folder / "suite.json").write_text(json.dumps(document))
    return f"/suites/{SUITE}/20260729T000000.000Z"


def add_repeat(store: Store, made: RunRecord, run: Run) -> RepeatFolder:
    """Stores the page of a test that ran five times."""
    runs = [
        Repetition(
            number=number, seed=made.test.seed + number, outcome=RunOutcome.of(made.parts), seconds=61.4,
            run=str(run.path), reproduce=made.test.reproduce,
        )
        for number in range(1, 6)
    ]  # fmt: skip
    folder = RepeatFolder.create(store.root, CASE, made.test.started_utc)
    tally = Tally(runs=runs, asked=5, until_fail=False, interrupted=False)
    folder.save(document_of(tally, test=CASE, seed=19, reproduce=made.test.reproduce, folder=str(folder.path)))
    return folder


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of a page of each kind, by its name."""
    root = tmp_path_factory.mktemp("pages")
    store = Store(root / "store")
    stale = with_many_faults(record(seed=11, operations=3000, stale=True))
    valid = with_many_lanes(record(seed=7, operations=1500))
    bad = add_run(store, stale, f"{SUITE}-{CASE}")
    good = add_run(store, valid, "nightly")
    dead = add_run(store, unrecovered(record(seed=7, operations=1500)), "dead")
    others = [copy_of(store, good, f"{SUITE}-{CASE}-{day}", day) for day in range(1, 6)]
    for day in range(6, 9):
        copy_of(store, good, "nightly", day)
    suite = add_suite(store, bad, stale.parts[0].reason * 2)
    repeat = add_repeat(store, stale, bad)
    in_one_process(AnalysisOptions(paths=[str(store.root)], out=str(root / "analysis")))
    going = store.create_run("going-on", valid.test.started_utc + timedelta(days=9))
    write_history(going, valid)

    def chosen(runs: list[Run]) -> str:
        return "&".join(f"run={quote(f'{run.test_name}/{run.stamp}')}" for run in runs)

    with StoreServer(store, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        served = server.url.rstrip("/")
        (key,) = bad.path.glob("key-*.html")
        assert 'id="messages"' in bad.report_html.read_text()
        yield {
            "report, invalid": bad.report_html.as_uri(),
            "report, valid": good.report_html.as_uri(),
            "report, unrecovered": dead.report_html.as_uri(),
            "report, explained": explained(root).report_html.as_uri(),
            "key": key.as_uri(),
            "repeat": repeat.page.as_uri(),
            "analysis": (root / "analysis" / "index.html").as_uri(),
            "runs": f"{served}/",
            "run": f"{served}/run/{bad.test_name}/{bad.stamp}/",
            "compare two": f"{served}/compare?{chosen([bad, others[0]])}",
            "compare six": f"{served}/compare?{chosen([bad, *others])}",
            "suites": f"{served}/suites",
            "suite": f"{served}{suite}",
            "live": f"{served}/live",
        }
        server.shutdown()
        thread.join(10)


KINDS_OF_PAGES = (
    "report, invalid",
    "report, valid",
    "report, unrecovered",
    "report, explained",
    "key",
    "repeat",
    "analysis",
    "runs",
    "run",
    "compare two",
    "compare six",
    "suites",
    "suite",
    "live",
)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", KINDS_OF_PAGES)
def test_a_page_fits(browser: Browser, pages: dict[str, str], page: str, width: int, tmp_path: Path) -> None:
    """Nothing is cut off, lies on something else, or is squeezed; the test leaves a screenshot if it fails."""
    assert set(pages) == set(KINDS_OF_PAGES)
    browser.complaints.clear()
    browser.open(pages[page], width=width, height=1000)
    faults = faults_of_layout(browser)
    if faults:
        browser.screenshot(tmp_path / "page.png")
    assert faults == []
    assert browser.complaints == []
