"""Histories of other checkers have those checkers' agreed verdicts, with every algorithm."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checker.formats.read import read_histories
from checker.models import model
from harness.verdict import Verdict
from tests.deciding import analysis, check_keys
from tests.porcupine import LOGS, VALID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Operation

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "histories"
ALGORITHMS = ("auto", "search", "linear", "wgl", "competition")
INITIAL = {"multi-register": {"x": 0, "y": 0}}
FIRST_FAILURE = {"bad-analysis": 14, "cas-failure": 491, "rethink-fail-minimal": 4, "rethink-fail": 217}


def _operations(path: Path) -> Sequence[Operation]:
    [history] = read_histories(str(path), keyed=None)
    return history.operations


def _rows() -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = {}
    with (DATA / "small" / "verdicts.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            rows.setdefault(row["model"], []).append(row)
    return rows


SMALL = _rows()


@pytest.mark.parametrize("name", sorted(SMALL))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_small_histories_are_decided_as_knossos_decides_them(name: str, algorithm: str) -> None:
    """Verdict, failing operation and the ok before it are those of knossos, for all 60 histories of each of its models."""
    knossos = model(name, initial=INITIAL.get(name), nil_read="any", crashed_dequeue="never")
    for row in SMALL[name]:
        result = analysis(
            knossos,
            _operations(DATA / "small" / row["file"]),
            algorithm=algorithm,
            certificate=True,
            counterexample=False,
        )
        before = result.previous_ok
        actual = (
            str(result.valid.as_json).lower(),
            "" if result.op is None else str(result.op.complete_index),
            "" if before is None else str(before.complete_index),
        )
        assert actual == (row["valid"], row["op_index"], row["previous_ok_index"]), row["file"]


@pytest.mark.parametrize("initial", [None, 0])
@pytest.mark.parametrize("path", sorted(DATA.glob("knossos/cas-register/*/*.edn")), ids=lambda path: path.stem)
def test_registers_of_real_systems_are_decided_as_knossos_decides_them(path: Path, initial: int | None) -> None:
    """The folder's name has the verdict, and the first failing completion is that of knossos's tests."""
    register = model("cas-register", initial=initial, nil_read="any")
    operations = _operations(path)
    for algorithm in ("auto", "linear", "wgl"):
        result = analysis(register, operations, algorithm=algorithm, counterexample=False)
        assert result.valid is (Verdict.VALID if path.parent.name == "good" else Verdict.INVALID)
        index = None if result.op is None else result.op.complete_index
        assert index == FIRST_FAILURE.get(path.stem)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_transactions_over_two_registers_are_decided_as_knossos_decides_them(algorithm: str) -> None:
    """The multi-register history is valid."""
    registers = model("multi-register", initial={"x": 0, "y": 0}, nil_read="any")
    operations = _operations(DATA / "knossos" / "multi-register" / "good" / "multi-register.edn")
    assert analysis(registers, operations, algorithm=algorithm, certificate=True).valid is Verdict.VALID


@pytest.mark.parametrize("path", sorted(DATA.glob("kv/*.txt")), ids=lambda path: path.stem)
@pytest.mark.parametrize("algorithm", ["auto", "search", "linear"])
def test_key_value_histories_are_decided_as_porcupine_decides_them(path: Path, algorithm: str) -> None:
    """The file's name has the verdict."""
    [history] = read_histories(str(path))
    result = check_keys("kv", history.operations, algorithm=algorithm, certificate=True)
    assert result.valid is (Verdict.VALID if path.stem.endswith("-ok") else Verdict.INVALID)


@pytest.mark.skipif(not LOGS, reason="the logs have no licence and are not here")
@pytest.mark.parametrize("failed_cas", ["drop", "observe"])
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_logs_of_porcupine_are_decided_as_porcupine_decides_them(path: Path, failed_cas: str) -> None:
    """The verdict is the same whether a failed cas counts as an observation or not, with either search."""
    register = model("cas-register", failed_cas=failed_cas)
    operations = _operations(path)
    expected = Verdict.VALID if int(path.stem[-3:]) in VALID else Verdict.INVALID
    results = [analysis(register, operations, algorithm=a, counterexample=False) for a in ("auto", "linear")]
    assert [one.valid for one in results] == [expected, expected]
    assert results[0].op == results[1].op
