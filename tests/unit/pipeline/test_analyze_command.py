"""The command `labrys analyze`: what it says, and what it needs to say it."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from commands.check.analyze import analyze, as_document, as_text
from harness.errors import ExitCode
from results.pipeline.errors import NoSpark, NotSuited
from results.pipeline.progress import Steps
from results.pipeline.spark import session
from tests.spark.runs import make_run


def analysis(orders: dict[str, int] | None = None, /, **counts: int) -> Any:
    """Returns an analysis with these verdicts, and what is known of the systems' own orders."""
    from results.pipeline.write.summary import Refusal, Summary  # noqa: PLC0415 - needs Spark's packages

    row = {
        "run": "a/1",
        "key": "k",
        "explanation": "it was\x1b[31m lost",
        "cause": None,
        "order_reason": "no\x1b[31m order",
    }
    orders = orders or {}
    return Summary(
        out="file:/out",
        runs=3,
        read=1,
        operations=1234,
        counts=counts,
        outcomes={"as-expected": 1, "unexpected": 1},
        refuted=[row] * min(counts.get("invalid", 0), 20),
        undecided=[],
        orders=orders,
        misordered=[row] * min(orders.get("invalid", 0), 20),
        reasons=[Refusal(reason="expected a header", rows=2, source="file:/s/1/history.jsonl", sources=3)],
        quarantined=2,
        tables={"verdicts": ["file:/out/generations/1/verdicts"]},
    )


def steps(**seconds: float) -> Steps:
    """Returns the steps of a job in this process, and how long they took."""
    made = Steps(Console(file=StringIO()))
    made.seconds |= seconds
    return made


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"valid": 3}, ExitCode.VALID),
        ({"valid": 3, "unknown": 1}, ExitCode.UNKNOWN),
        ({"valid": 3, "unknown": 1, "invalid": 1}, ExitCode.INVALID),
        ({}, ExitCode.UNKNOWN),
    ],
)
def test_exit_codes(counts: dict[str, int], code: ExitCode) -> None:
    """An invalid key is never masked, an unknown one is not taken for a valid one, and no key at all is unknown."""
    assert analysis(**counts).exit_code is code


def test_what_is_said_steers_no_terminal() -> None:
    """Texts of histories are shown escaped, and long lists are cut."""
    said = as_text(analysis(invalid=30, valid=1))
    assert "\x1b" not in said
    assert "and 20 more in the table of verdicts" in said
    assert "quarantine 2 rows of file:/s/1/history.jsonl and 2 other files: expected a header" in said


def test_a_system_s_own_order_is_told_beside_the_verdicts() -> None:
    """An order that is not legal makes no key invalid, and is told of all the same; one that is not known is counted."""
    summary = analysis({"valid": 4, "invalid": 25, "unknown": 1}, valid=30)
    assert summary.exit_code is ExitCode.VALID
    said = as_text(summary)
    assert "order a/1 key k: no\\x1b[31m order" in said
    assert "order  ... and 15 more in the table of verdicts" in said
    assert "order  1 key has an order that was not checked" in said
    told = as_document(summary, steps())["order_agrees"]
    assert {name: told[name] for name in ("valid", "invalid", "unknown")} == {"valid": 4, "invalid": 25, "unknown": 1}
    assert len(told["keys"]) == 20
    assert "order  " not in as_text(analysis(valid=2))


def test_the_summary_is_json() -> None:
    """The document has a verdict and the places of the tables."""
    document = json.loads(json.dumps(as_document(analysis(valid=2, unknown=1), steps(read=1.5))))
    assert document["verdict"] == "unknown"
    assert document["verdicts"] == {"valid": 2, "invalid": 0, "unknown": 1}
    assert (document["path"], document["seconds"]) == ("process", {"read": 1.5})
    assert document["tables"]["verdicts"] == ["file:/out/generations/1/verdicts"]
    (reason,) = document["quarantine"]["reasons"]
    assert reason == {"reason": "expected a header", "rows": 2, "source": "file:/s/1/history.jsonl", "sources": 3}


def test_without_spark_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyspark is missing and Spark is wanted, the message says how to get it."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else real(name))
    result = CliRunner().invoke(analyze, ["somewhere", "--spark"])
    assert isinstance(result.exception, NoSpark)
    assert "pip install 'labrys[spark]'" in str(result.exception)


def test_a_setting_has_a_name_and_a_value() -> None:
    """A setting without `=` is refused before Spark starts."""
    result = CliRunner().invoke(analyze, ["somewhere", "--conf", "spark.executor.memory"])
    assert result.exit_code == 2
    assert "expected NAME=VALUE" in result.output


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a store with one run, where Spark does not start."""

    def starts(_: Any) -> Any:
        raise NoSpark("Spark starts")

    monkeypatch.setattr(session, "spark_session", starts)
    make_run(tmp_path / "store", "1", stale=True)
    return tmp_path / "store"


def test_a_small_job_starts_no_spark(store: Path) -> None:
    """The summary says so."""
    out = store.parent / "out"
    result = CliRunner().invoke(analyze, [str(store), "--out", str(out), "--format", "json", "--no-pictures"])
    assert result.exit_code == ExitCode.INVALID
    document = json.loads(result.stdout)
    assert (document["path"], document["verdict"], document["operations"]) == ("process", "invalid", 3)


@pytest.mark.parametrize(
    "options", [["--spark"], ["--master", "local[1]"], ["--conf", "a=b"], ["--driver-memory", "1g"]]
)
def test_spark_does_the_job_where_it_is_asked_to(store: Path, options: list[str]) -> None:
    """A setting of Spark's asks for it too."""
    result = CliRunner().invoke(analyze, [str(store), "--out", str(store.parent / "out"), *options])
    assert isinstance(result.exception, NoSpark)


def test_spark_does_what_one_process_cannot(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line says why; with --no-spark it is an error, and a setting of Spark's contradicts that."""
    lines = b'{"format":"labrys-history","version":1}\n' + os.urandom(4000).hex().encode() + b"\n"
    (store / "torn.jsonl.gz").write_bytes(gzip.compress(lines)[:-500])
    command = [str(store), "--out", str(store.parent / "out")]
    result = CliRunner().invoke(analyze, command)
    assert isinstance(result.exception, NoSpark)
    assert "using Spark: " in result.stderr
    assert "torn.jsonl.gz" in result.stderr
    result = CliRunner().invoke(analyze, [*command, "--no-spark"])
    assert isinstance(result.exception, NotSuited)
    result = CliRunner().invoke(analyze, [*command, "--no-spark", "--scratch", "/"])
    assert "--scratch is for Spark" in result.output
    monkeypatch.setattr(session, "is_submitted", lambda: True)
    result = CliRunner().invoke(analyze, [*command, "--no-spark"])
    assert "spark-submit is for Spark" in result.output


def test_one_process_needs_no_spark(tmp_path: Path) -> None:
    """A whole analysis with pictures, without pyspark, py4j, pandas and Java."""
    make_run(tmp_path / "store", "1", stale=True)
    for name in ("pyspark", "py4j", "pandas"):
        (tmp_path / "gone").mkdir(exist_ok=True)
        (tmp_path / "gone" / f"{name}.py").write_text(f"raise ImportError('there is no {name}')")
    code = f"import cli; cli.labrys.main(['analyze', {str(tmp_path / 'store')!r}, '--out', {str(tmp_path / 'out')!r}])"
    variables = {"PATH": "", "PYTHONPATH": os.pathsep.join([str(tmp_path / "gone"), str(Path(__file__).parents[3])])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120, env=variables
    )
    assert done.returncode == ExitCode.INVALID, done.stderr
    assert (tmp_path / "out" / "index.html").is_file()


def test_help_needs_no_spark() -> None:
    """Neither the list of commands nor this command's help imports Spark."""
    asked = "cli.labrys.main(['analyze', '--help'], standalone_mode=False)"
    code = f"import sys, cli\ntry: {asked}\nfinally: print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "'commands.check.analyze'" in done.stdout
    assert "'pyspark" not in done.stdout
    assert "'py4j" not in done.stdout
    assert "'pandas" not in done.stdout


def test_the_archive_has_what_executors_import(tmp_path: Path) -> None:
    """The packages and the kernel are in it, and it is added to what the user ships."""
    from results.pipeline.spark.ship import shipped  # noqa: PLC0415 - beside its test

    settings = shipped({"spark.archives": "other.zip#other", "spark.executorEnv.PYTHONPATH": "lib"}, tmp_path)
    with tarfile.open(tmp_path / "labrys-package.tar.gz") as archive:
        names = archive.getnames()
    assert {"harness/op.py", "checker/checking.py", "results/pipeline/spark/events.py"} <= set(names)
    assert any(name.startswith("checker/_kernel.") for name in names)
    assert not [name for name in names if {"target", "tests"} & {*name.split("/")}]
    assert settings["spark.archives"] == f"other.zip#other,{tmp_path.as_uri()}/labrys-package.tar.gz#labrys-package"
    assert settings["spark.executorEnv.PYTHONPATH"] == "labrys-package:lib"
    whole = {"spark.archives": "env.tar.gz#env", "spark.pyspark.python": "./env/bin/python"}
    assert shipped(whole, tmp_path) == {}


def test_the_archive_of_a_hunt_has_what_runs_systems(tmp_path: Path) -> None:
    """All packages with their files, without tests, and the entry points by which executors find systems."""
    from results.pipeline.spark.ship import shipped  # noqa: PLC0415 - beside its test

    shipped({}, tmp_path, runs_systems=True)
    with tarfile.open(tmp_path / "labrys-package.tar.gz") as archive:
        names = set(archive.getnames())
    assert {
        "commands/hunt/runs.py", "nemesis/kinds.py", "clusters/local/node.sh",
        "workloads/__init__.py", "checker/checking.py",
    } <= names  # fmt: skip
    assert any(name.startswith("labrys-") and name.endswith(".dist-info/entry_points.txt") for name in names)
    assert any(name.startswith("checker/_kernel.") for name in names)
    assert not [name for name in names if {"target", "tests", "findings", "__pycache__"} & {*name.split("/")}]


def test_a_module_of_the_user_s_goes_to_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it imports from its folder, and no more of it; also beside an environment of the user's."""
    from checker.models import find_model  # noqa: PLC0415 - beside its test
    from results.pipeline.spark.ship import shipped  # noqa: PLC0415 - beside its test

    (tmp_path / "own_model.py").write_text(
        "from checker.models import Model\nfrom own_part import begin\n\n\nclass Own(Model):\n    initial = begin\n\n"
        "    def step(self, state, op):\n        return state\n"
    )
    (tmp_path / "own_part.py").write_text("begin = 1\n")
    (tmp_path / "own_other.py").write_text("raise ZeroDivisionError\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    try:
        assert find_model("own_model:Own", by_place=True).initial == 1
        whole = {"spark.archives": "env.tar.gz#env", "spark.pyspark.python": "./env/bin/python"}
        settings = shipped(whole, tmp_path, "own_model:Own")
        with tarfile.open(tmp_path / "labrys-package.tar.gz") as archive:
            assert sorted(archive.getnames()) == ["own_model.py", "own_part.py"]
        assert settings["spark.archives"].startswith("env.tar.gz#env,")
        shipped({}, tmp_path, "own_model:Own")
        with tarfile.open(tmp_path / "labrys-package.tar.gz") as archive:
            assert {"own_model.py", "own_part.py", "checker/checking.py"} <= set(archive.getnames())
    finally:
        for name in ("own_model", "own_part"):
            sys.modules.pop(name, None)


def test_a_model_that_cannot_be_had_is_told_of_before_spark_starts() -> None:
    """A sentence, at once."""
    result = CliRunner().invoke(analyze, ["somewhere", "--model", "nothing_here:Own"])
    assert "expected nothing_here.py in the working folder" in str(result.exception)


@pytest.mark.parametrize(
    ("settings", "packed"),
    [
        ({}, False),
        ({"spark.master": "local[2]"}, False),
        ({"spark.master": "spark://head:7077", "spark.submit.deployMode": "client"}, True),
        ({"spark.master": "yarn", "spark.submit.deployMode": "cluster"}, False),
    ],
)
def test_files_are_brought_to_executors_elsewhere(settings: dict[str, str], packed: bool) -> None:
    """A driver that works alone needs no archive, and one inside a cluster is in that of its user."""
    from results.pipeline.spark.session import has_executors  # noqa: PLC0415 - beside its test

    assert has_executors(settings) is packed


def test_a_file_of_the_user_s_goes_to_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it imports from its folder; workers on this machine find both, behind Labrys."""
    from checker.models import find_model  # noqa: PLC0415 - beside its test
    from harness.console import own  # noqa: PLC0415 - beside its test
    from results.pipeline.spark.ship import reachable, shipped  # noqa: PLC0415 - beside its test

    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "model.py").write_text(
        "from checker.models import Model\nfrom own_part import begin\n\n\nclass Own(Model):\n    initial = begin\n\n"
        "    def step(self, state, op):\n        return state\n"
    )
    (folder / "own_part.py").write_text("begin = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    try:
        model = find_model("results/model.py:Own", by_place=True)
        whole = {"spark.archives": "env.tar.gz#env", "spark.pyspark.python": "./env/bin/python"}
        shipped(whole, tmp_path, "results/model.py:Own")
        with tarfile.open(tmp_path / "labrys-package.tar.gz") as archive:
            assert sorted(archive.getnames()) == ["model.py", "own_part.py"]
            archive.extractall(tmp_path / "executor", filter="data")
        del sys.modules[model.__module__]
        shutil.rmtree(folder)
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "executor")])
        assert importlib.import_module(model.__module__).Own.initial == 1
        places = reachable({}, "results/model.py:Own")["spark.executorEnv.PYTHONPATH"].split(":")
        assert places[1:] == [str(folder), str(tmp_path)]
        assert Path(places[0], "harness", "op.py").is_file()
    finally:
        own.module_of.cache_clear()
        sys.modules.pop("own_part", None)
