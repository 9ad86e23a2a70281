"""Numbers and their nouns agree on the terminal, in JUnit and on every page of a run."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from checker.linearizable import linearizability
from harness import parts, reached, states
from harness.console.plain import counted_of
from harness.faults import PlannedFault
from harness.replicas import Replicas
from harness.targets import AllNodes
from results.live.terminal import print_summary
from results.page.report import render
from results.stored.document import build
from workloads.register.workload import reads_saw_writes

if TYPE_CHECKING:
    from results.record.record import RunRecord

NOUNS = "keys|operations|faults|runs|reads|replicas|errors|files|lines|violations|moments|nodes|functions|refusals"
# A number of one before a plural, such as `1 keys` and `1 of 1 planned faults`, but not `1 of 2 keys`.
ONE_OF_MANY = re.compile(rf"(?<![\d.,])1 (?:(?!of )[a-z]+ ){{0,2}}(?:{NOUNS})\b")


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(1, 1, "1 of 1 key is"), (1, 5, "1 of 5 keys is"), (0, 1, "0 of 1 key is"), (2, 2000, "2 of 2,000 keys are")],
)
def test_the_verb_agrees_with_the_number(part: int, whole: int, text: str) -> None:
    """The noun agrees with the whole, and the verb with both."""
    assert counted_of(part, whole, "key", "are") == text
    assert counted_of(part, whole, "key") == text.rsplit(" ", 1)[0]


def test_a_run_of_one_has_no_plural_of_one(valid_record: RunRecord, tmp_path: Path) -> None:
    """One operation, key, fault, replica's key, log file and error."""
    operation = next(op for op in valid_record.operations if op.f == "write" and op.error is None)
    fault = valid_record.faults[0]
    log = tmp_path / "a.log"
    log.write_text("FATAL\n")
    same = Replicas(applied={"n1": 7, "n2": 7}, compared={7: ("n1", "n2")}, keys=1)
    made = [
        linearizability("cas-register", [operation])[0],
        reached.progress([operation], [], None),
        reached.faults_effective(
            [fault], [PlannedFault(id=0, kind=fault.planned.kind, target=AllNodes(), start_s=0, end_s=1)]
        ),
        states.replicas_equal(same),
        parts.client_errors([replace(operation, error="timeout")]),
        parts.log_patterns({"n1": [log]}, ["no such line"], ["n1"]),
        parts.log_patterns({"n1": [log]}, ["FATAL"], ["n1"]),
        reads_saw_writes([replace(operation, f="read", result=7)]),
    ]
    for part in made:
        assert not ONE_OF_MANY.search(part.reason), part.reason
    record = replace(valid_record, operations=[operation], faults=[fault], parts=made)
    document = build(record)
    page = re.sub(
        r"<(script|style|svg).*?</\1>|<[^>]*>", "", render(record, document, drawn={}, logs=[]), flags=re.DOTALL
    )
    out = io.StringIO()
    print_summary(Console(file=out, width=200), document, report=Path("report.html"))
    for text in (page, out.getvalue()):
        assert not ONE_OF_MANY.search(text), ONE_OF_MANY.search(text)
    assert "1 operation: 1 ok" in out.getvalue()


def test_the_search_for_plurals_finds_them() -> None:
    """Otherwise the test above could not fail."""
    for text in (
        "1 keys",
        "on 1 keys.",
        "1 planned faults",
        "1 of 1 faults",
        "1 operations: 1 ok",
        "1 more violations",
    ):
        assert ONE_OF_MANY.search(text), text
    for text in ("1 ms", "11 keys", "1 key", "1.1 keys", "0.1 faults", "1 of 2 keys is", "1,001 keys"):
        assert not ONE_OF_MANY.search(text), text
