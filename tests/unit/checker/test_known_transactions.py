"""Histories of transactions have the verdicts and the types of Elle, except where Elle is known to be wrong."""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from checker.formats.columns import of_operations
from checker.formats.read import read_source
from checker.formats.source import opened
from checker.transactions.judge import judge

if TYPE_CHECKING:
    from checker.formats.columns import Columns

DATA: Final = Path(__file__).parents[2] / "data" / "histories" / "transactions"
PAGE: Final = Path(__file__).parents[3] / "docs" / "journal" / "transactions.md"
SAME_NAME: Final = {"strong-serializable": "strict-serializable"}
SOURCES: Final = {"wfr-keys": "writes-follow-reads"}
OURS: Final = frozenset({"G-SI", "G-SI-process", "G-SI-realtime"})  # beside G2-item; Elle has no such type
UNKNOWN_TYPES: Final = {"empty-transaction-graph"}  # an unknown verdict here, and no anomaly

# Verdict and types of Labrys by file and model, where they differ from the exact ones of the data, and the reason.
ONLY_REAL_TIME: Final = "only real time orders the transactions, so nothing was tested"
UNREAD: Final = "no read shows the value that was written twice, so the writes are two like others"
UNTESTED: Final = {
    "list-append/0246.edn": ("",),
    "list-append/0322.edn": ("",),
    "rw-register/0249.edn": ("", "wfr-keys"),
    "rw-register/0477.edn": ("", "wfr-keys"),
    "rw-register/0583.edn": ("", "wfr-keys", "sequential-keys", "linearizable-keys"),
    "rw-register/0591.edn": ("", "wfr-keys"),
}
DIFFERENT: Final[dict[tuple[str, str, str], tuple[str, set[str], str]]] = {
    **{
        (file, options, "strict-serializable"): ("unknown", set(), ONLY_REAL_TIME)
        for file, several in UNTESTED.items()
        for options in several
    },
    **{
        (f"rw-register/{number}.edn", options, model): ("true", set(), UNREAD)
        for number in ("0009", "0237")
        for options in ("", "wfr-keys", "sequential-keys", "linearizable-keys")
        for model in ("strict-serializable", "serializable")
    },
}
# How many verdicts are invalid here alone: the model orders versions, or the rest of a value written twice.
BEYOND: Final = {"list-append": {}, "rw-register": {"model": 47}}
KINDS: Final = {
    "garbage-read": "Elle raises an error on lists, and accepts it in registers",
    "written-twice": "Elle raises an error on lists, and accepts it in registers",
    "open-invocation": "Elle raises an error",
    "failed-read": "Elle raises an error",
    "nil-empty": "Elle takes nil and the empty list for two versions",
    "search": "Elle's search for cycles misses a type",
    "info-writer": "Elle does not count the writes of transactions without an answer in registers",
    "future-read": "Elle accepts a register's value before its write",
    "lost-update-own-write": "Elle reports a lost update of transactions that did not read the version first",
    "tie": "two longest lists of one length contradict each other, and either may be the order; Labrys takes the first",
}


def _table(name: str) -> list[dict[str, str]]:
    data = (DATA / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


@cache
def _folder(root: Path) -> Path:
    with tarfile.open(DATA / "histories.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the histories."""
    return _folder(tmp_path_factory.mktemp("transactions"))


def _columns(folder: Path, file: str, workload: str) -> Columns:
    """Returns a history, read by the rules of transactions."""
    with opened(str(folder / file)) as source:
        [history] = read_source(source, transactions=workload)
    assert not history.lacks
    return of_operations(history.operations, file)


@pytest.mark.parametrize(("workload", "rows"), [("list-append", 1492), ("rw-register", 2400)])
def test_types_are_those_of_elle(folder: Path, workload: str, rows: int) -> None:
    """Verdict, types and models are those of Elle or, where the data has a deviation of Elle, the exact ones."""
    deviations = {(row["file"], row["options"], row["models"]): row for row in _table("deviations.tsv")}
    columns: dict[str, Columns] = {}
    named: dict[str, list[set[str]]] = {"Elle": [], "adya": [], "Labrys": []}
    seen, compared, beyond = set(), 0, Counter[str]()
    for row in _table("verdicts.tsv.gz"):
        file, options, model = case = row["file"], row["options"], row["models"]
        if row["workload"] != workload:
            continue
        if file not in columns:
            columns[file] = _columns(folder, file, workload)
        history = columns[file]
        sources = [SOURCES.get(name, name) for name in options.split()]
        judgement = judge(history, workload=workload, model=model, sources=sources)
        verdict = str(judgement.verdict.as_json).lower()
        types = set(judgement.figures.get("anomaly-types", ()))
        named["Elle"].append(_told(row["valid"], row["anomaly_types"]))
        named["adya"].append(  # where it differs from Elle
            _told(row["adya_valid"], row["adya_anomaly_types"]) if row["adya_valid"] else named["Elle"][-1]
        )
        named["Labrys"].append(_told(verdict, " ".join(types)))
        deviation = deviations.get(case)
        if deviation is None:
            expected, wanted = row["valid"], set(row["anomaly_types"].split())
        else:
            assert deviation["kind"] in KINDS
            expected, wanted = deviation["exact_valid"], set(deviation["exact_anomaly_types"].split())
        if not expected:  # a tie
            assert verdict == "false"
            continue
        if case in DIFFERENT:
            seen.add(case)
            expected, wanted, _ = DIFFERENT[case]
        compared += 1
        if verdict == "false" and expected != "false":
            # No option of Elle's orders these versions, but the model does; or other keys than that of the value show it.
            reason = (
                "model" if "implied-orders" in judgement.figures and "left out" not in judgement.reason else "twice"
            )
            assert reason == "model" or (deviation is not None and deviation["kind"] == "written-twice"), case
            beyond[reason] += 1
            continue
        assert (verdict, types - OURS) == (expected, wanted - UNKNOWN_TYPES), case
        if deviation is None and case not in DIFFERENT and verdict == "false":
            ruled_out = {SAME_NAME.get(name, name) for name in row["not"].split()}
            there = {*types, *judgement.figures["allowed-anomaly-types"]}
            more = {"snapshot-isolation"} if OURS & there else set()
            if "G-single-item" in there:
                more.add("parallel-snapshot-isolation")  # Elle's allows it, against the definition
            assert ruled_out <= set(judgement.figures["not"]) <= ruled_out | more, case
    assert seen == {case for case in DIFFERENT if case[0].startswith(workload)}
    assert compared == rows
    assert beyond == BEYOND[workload]
    lines = [
        f"| {name} | {' | '.join(str(sum(name in kinds for kinds in told)) for told in named.values())} |"
        for name in sorted({name for told in named.values() for kinds in told for name in kinds})
    ]
    table = "\n".join([f"| `{workload}` | {' | '.join(named)} |", "|---|---|---|---|", *lines])
    assert f"\n{table}\n" in PAGE.read_text(encoding="utf-8"), (
        f"docs/journal/transactions.md lacks this table:\n{table}"
    )


def _told(verdict: str, types: str) -> set[str]:
    """Returns what a checker answers, in the words of the table: the verdict, and the types that it names."""
    word = {"true": "valid", "false": "invalid", "unknown": "unknown"}.get(verdict, "ends with an error")
    return {word, *(f"`{name}`" for name in set(types.split()) - UNKNOWN_TYPES)}
