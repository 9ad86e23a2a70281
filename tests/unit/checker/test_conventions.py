"""All files of one run give the same verdict, key by key. If a convention weakens a verdict, the output counts it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import checker.checking
from checker.checking import Checked, Request, check_file
from checker.deciders import Wanted
from checker.errors import Disagreement
from checker.formats.errors import BadHistory
from checker.formats.jepsen import write_history, write_key_histories
from checker.formats.jepsen_reader import conventions_at
from checker.formats.parquet import write_operations
from checker.formats.read import read_histories
from checker.formats.source import opened
from commands.check.command import check
from harness.history import HistoryWriter
from harness.load import ClosedLoop
from harness.op import OpType
from harness.pairing import events_of
from harness.verdict import Verdict
from tests.catches.registers import Bug, run
from tests.porcupine import LOGS
from workloads.register import RegisterOptions, RegisterWorkload, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.decide.history import Decidable
    from harness.op import Operation

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "histories"
ASKED: dict[str, Any] = {
    "wanted": Wanted(model="cas-register"),
    "conventions": {},
    "keyed": None,
    "algorithm": "auto",
    "time_limit_s": None,
    "memory_limit": None,
    "cross_check": False,
    "certificate": False,
}
HEADER = '{"format":"labrys-history","version":1}\n'
NIL_AFTER_WRITE = [
    "{:type :invoke, :process 0, :f :write, :value 1",
    "{:type :ok, :process 0, :f :write, :value 1}",
    "{:type :invoke, :process 0, :f :read, :value nil}",
    "{:type :ok, :process 0, :f :read, :value nil}",
]


def _edn(conventions: str | None) -> str:
    first, *rest = NIL_AFTER_WRITE
    return "\n".join([first + ("}" if conventions is None else f", :labrys/conventions {conventions}}}"), *rest]) + "\n"


def _written(folder: Path, operations: Sequence[Operation]) -> dict[str, Path]:
    """Writes a run's files, all of the same operations."""
    files = {name: folder / name for name in ("history.jsonl", "history.edn", "operations.parquet")}
    # Indexes are dense in Labrys's own format, and processes are numbers.
    numbers: dict[Any, int] = {}
    events = [
        op._replace(index=index, process=numbers.setdefault(op.process, len(numbers)))
        for index, op in enumerate(events_of(operations))
    ]
    files["history.jsonl"].unlink(missing_ok=True)
    writer = HistoryWriter(files["history.jsonl"], {})
    for op in events:
        members = {
            name: getattr(op, name) for name in ("time_ns", "process", "f", "value", "key", "node", "error", "phase")
        }
        writer.append(op_type=op.type, **members)
    writer.close()
    write_history(files["history.edn"], events)
    [history] = read_histories(str(files["history.jsonl"]))
    write_operations(files["operations.parquet"], history.operations, run="r")
    return files


def _verdicts(path: Path, **asked: Any) -> dict[str | None, Verdict]:
    [checked] = check_file(str(path), Request(**{**ASKED, **asked}))
    assert isinstance(checked, Checked)
    return {key: analysis.valid for key, analysis in checked.analysis.keys.items()}


def _shipped() -> list[tuple[str, str, str | None, Path]]:
    """Returns a name, a model, an initial state and a file for each available history."""
    initial = {"multi-register": "{:x 0 :y 0}"}
    small = [("small", p.parent.name, initial.get(p.parent.name), p) for p in sorted(DATA.glob("small/*/*.edn"))]
    knossos = [
        ("knossos", p.parents[1].name, initial.get(p.parents[1].name), p) for p in DATA.glob("knossos/*/*/*.edn")
    ]
    kv = [("kv", "kv", None, p) for p in DATA.glob("kv/*.txt")]
    console = [("console", "cas-register", None, p) for p in LOGS]
    return [*small, *knossos, *kv, *console]


@pytest.mark.parametrize("kind", ["small", "knossos", "kv", "console"])
def test_all_files_of_one_history_give_one_verdict(tmp_path: Path, kind: str) -> None:
    """Every shipped history has the same verdict as JSON lines, EDN and Parquet, key by key."""
    rows = [row for row in _shipped() if row[0] == kind]
    if not rows:
        pytest.skip("these histories are not here")
    seen = set()
    for _, model, initial, path in rows:
        [history] = read_histories(str(path))
        files = _written(tmp_path, history.operations)
        jsonl, edn, parquet = (_verdicts(file, wanted=Wanted(model=model, initial=initial)) for file in files.values())
        assert jsonl == edn == parquet, path
        seen |= set(jsonl.values())
    assert seen == {Verdict.VALID, Verdict.INVALID}


@pytest.mark.parametrize("values", list(Values))
def test_all_files_of_a_run_that_reads_unsafely_give_one_verdict(tmp_path: Path, values: Values) -> None:
    """Stale reads of nil are as wrong in EDN as in JSON lines. Taken as reads of any value, they would be hidden."""
    workload = RegisterWorkload(RegisterOptions(values=values, ops_per_key=30, hot_keys=0))
    _, operations = run(
        workload, seed=2, bug=Bug.STALE_READ, load=ClosedLoop(concurrency=6), seconds=5.0, path=tmp_path / "run.jsonl"
    )
    files = _written(tmp_path, operations)
    jsonl, edn, parquet = (_verdicts(file) for file in files.values())
    assert jsonl == edn == parquet
    weaker = _verdicts(files["history.edn"], conventions={"nil_read": "any"})
    assert weaker.keys() == edn.keys()
    assert list(weaker.values()).count(Verdict.INVALID) < list(edn.values()).count(Verdict.INVALID)
    for key, path in write_key_histories(tmp_path / "keys", events_of(operations)).items():
        assert _verdicts(path) == {None: edn[key]}


def test_keys_are_said_where_no_read_shows_them(tmp_path: Path, operation: Callable[..., Operation]) -> None:
    """A keyed history without reads is keyed in EDN too, and one with values that look like keys is not."""
    keyed = [operation(p, "acquire", None, 10 * p, 10 * p + 1, key=f"k{p}") for p in range(2)]
    for file in _written(tmp_path, keyed).values():
        assert _verdicts(file, wanted=Wanted(model="mutex")) == {"k0": Verdict.VALID, "k1": Verdict.VALID}
    plain = [operation(0, "read", ["a", None], 0, 1, ["a", None])]
    for file in _written(tmp_path, plain).values():
        assert _verdicts(file, wanted=Wanted(model="noop")) == {None: Verdict.VALID}


@pytest.mark.parametrize(
    ("conventions", "options", "valid"),
    [
        (None, {}, Verdict.VALID),
        ("{:nil-read :exact}", {}, Verdict.INVALID),
        ("{:nil-read :any}", {}, Verdict.VALID),
        ("{}", {}, Verdict.VALID),
        ("{:nil-read :exact}", {"nil_read": "any"}, Verdict.VALID),
        ("{:nil-read :any}", {"nil_read": "exact"}, Verdict.INVALID),
    ],
)
def test_a_flag_goes_before_the_file_and_the_file_before_its_format(
    tmp_path: Path, conventions: str | None, options: dict[str, str], valid: Verdict
) -> None:
    """A history without conventions, such as Jepsen's own, is judged by those of EDN."""
    path = tmp_path / "history.edn"
    path.write_text(_edn(conventions))
    assert _verdicts(path, conventions=options) == {None: valid}


@pytest.mark.parametrize(
    ("conventions", "reason"),
    [
        ("{:nil-reads :exact}", "expected :keyed, :nil-read, :failed-cas, :crashed-dequeue in :labrys/conventions"),
        ("{:nil_read :exact}", "found :nil_read. Did you mean 'nil-read'?"),
        ("{:nil-read :some}", "expected :exact or :any for :nil-read in :labrys/conventions, found :some"),
        ('{:nil-read "exact"}', 'found "exact"'),
        ("{:nil-read nil}", "found nil"),
        ("{:keyed 1}", "expected true or false for :keyed"),
        ("{7 :exact}", "found 7"),
        ("[:exact]", "expected a map of conventions after :labrys/conventions, found [:exact]"),
    ],
)
def test_conventions_that_are_not_known_are_refused(tmp_path: Path, conventions: str, reason: str) -> None:
    """The verdict depends on them, so nothing is skipped. The error has the line."""
    path = tmp_path / "history.edn"
    path.write_text(_edn(conventions))
    with pytest.raises(BadHistory) as caught:
        read_histories(str(path))
    assert caught.value.line == 1
    assert reason in str(caught.value)


@pytest.mark.parametrize("line", [1, 2, 3])
def test_conventions_stand_in_the_first_event_alone(tmp_path: Path, line: int) -> None:
    """Later conventions would change the meaning of earlier events."""
    lines = _edn("{:nil-read :exact}").splitlines()
    lines[line] = lines[line].removesuffix("}") + ", :labrys/conventions {:nil-read :exact}}"
    path = tmp_path / "history.edn"
    path.write_text("\n".join(lines))
    with pytest.raises(BadHistory, match="in the first event alone") as caught:
        read_histories(str(path))
    assert caught.value.line == line + 1


def test_the_first_event_may_be_that_of_a_fault(tmp_path: Path) -> None:
    """Its conventions count all the same, and the start of the file is enough to read them."""
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :info, :process :nemesis, :f :start, :value nil, :labrys/conventions {:nil-read :exact}}\n" + _edn(None)
    )
    assert _verdicts(path) == {None: Verdict.INVALID}
    with opened(str(path)) as source:
        assert conventions_at(source) == {"nil_read": "exact"}


def _documents(path: Path, *options: str) -> tuple[str, dict[str, Any]]:
    def output(*more: str) -> str:
        return CliRunner().invoke(check, [str(path), *options, *more], catch_exceptions=False).stdout

    return output(), json.loads(output("--format", "json"))


def test_what_a_convention_silences_is_counted(tmp_path: Path, operation: Callable[..., Operation]) -> None:
    """Reads of nil, failed compare-and-sets and crashed dequeues, in text and data. Without any, there is no note."""
    path = tmp_path / "operations.parquet"
    history = [
        operation(0, "write", 1, 0, 1, 1),
        *(operation(0, "read", None, 10 * n, 10 * n + 1) for n in range(1, 11)),
        operation(0, "cas", [7, 8], 200, 201, kind=OpType.FAIL),
    ]
    write_operations(path, history, run="r")
    text, document = _documents(path, "--nil-read", "any")
    assert "10 reads of nil taken as reads of anything (--nil-read any)\n" in text
    assert "1 failed compare-and-set ignored (--failed-cas drop)\n" in text
    assert document["weakened"] == {"nil_read": 10, "failed_cas": 1}
    text, document = _documents(path, "--failed-cas", "observe")
    assert "taken as" not in text
    assert document["weakened"] == {}
    queue = [operation(0, "enqueue", 1, 0, 1, 1), operation(1, "dequeue", None, 2, None)]
    write_operations(path, queue, run="r")
    text, document = _documents(path, "--model", "fifo-queue", "--crashed-dequeue", "never")
    assert "1 crashed dequeue taken as never happening (--crashed-dequeue never)\n" in text
    assert document["weakened"] == {"crashed_dequeue": 1}
    reads = [["r", "x", None], ["w", "y", 1], ["r", "y", None]]
    write_operations(path, [operation(0, "txn", reads, 0, 1, reads)], run="r")
    assert _documents(path, "--model", "multi-register", "--nil-read", "any")[1]["weakened"] == {"nil_read": 2}


def test_several_files_are_counted_together(tmp_path: Path) -> None:
    """The table of several histories ends with the weakened operations of all."""
    files = [tmp_path / "a.edn", tmp_path / "b.edn"]
    for file in files:
        file.write_text(_edn(None))
    output = CliRunner().invoke(check, [*map(str, files)], catch_exceptions=False).stdout
    assert "\n2 reads of nil taken as reads of anything (--nil-read any)\n2 histories: " in output


def test_arrays_count_as_objects_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Callable[..., Operation]
) -> None:
    """A long Parquet file is judged without objects, and its weakened operations are counted."""
    path = tmp_path / "operations.parquet"
    history = [
        operation(0, *[("write", n), ("read", None), ("read", None), ("cas", [0, 1])][n % 4], 10 * n, 10 * n + 1, n - 1)
        for n in range(200)
    ]
    history = [replace(op, result=None) if n % 8 == 1 else op for n, op in enumerate(history)]
    history = [replace(op, type=OpType.FAIL, result=None) if op.f == "cas" else op for op in history]
    write_operations(path, history, run="r")
    asked = Request(**{**ASKED, "conventions": {"nil_read": "any"}})
    [objects] = check_file(str(path), asked)
    assert isinstance(objects, Checked)
    monkeypatch.setattr(checker.checking, "LONG_ROWS", 10)
    [arrays] = check_file(str(path), asked)
    assert isinstance(arrays, Checked)
    assert arrays.history.operations == ()
    assert arrays.weakened == objects.weakened == {"nil_read": 25, "failed_cas": 50}


def test_a_kept_history_says_how_it_was_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history on which algorithms disagree is written with the conventions of the check."""
    path = tmp_path / "history.edn"
    path.write_text(_edn(None))

    def disagree(history: Decidable, _question: object) -> None:
        raise Disagreement("zones says valid, but wgl says invalid", history.operations(0))

    monkeypatch.setattr(checker.checking, "decide", disagree)
    with pytest.raises(Disagreement) as caught:
        list(check_file(str(path), Request(**ASKED)))
    assert caught.value.conventions == {"nil_read": "any", "failed_cas": "drop", "crashed_dequeue": "never"}


@pytest.mark.parametrize(("text", "suffix"), [(HEADER, "jsonl"), ("[]", "edn")], ids=["jsonl", "edn"])
def test_nothing_tested_is_unknown(tmp_path: Path, text: str, suffix: str) -> None:
    """A history without operations is unknown, with a message. `--empty valid` is knossos's behaviour."""
    path = tmp_path / f"history.{suffix}"
    path.write_text(text)
    done = CliRunner().invoke(check, [str(path), "--format", "json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert (done.exit_code, document["valid"], document["cause"]) == (2, "unknown", "empty")
    assert document["explanation"] == "There are no operations, so nothing was tested."
    assert CliRunner().invoke(check, [str(path)]).exit_code == 2
    assert CliRunner().invoke(check, [str(path), "--empty", "valid"]).exit_code == 0
    assert ":unknown" in CliRunner().invoke(check, [str(path), "--format", "edn"]).stdout
