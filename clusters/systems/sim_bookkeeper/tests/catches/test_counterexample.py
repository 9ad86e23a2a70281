"""The counterexample of the unbounded ledger without truncation: hunted, shrunk, and told as its document tells it.

The document: entry 1 is B on b1, and C on b2 and b3. `tests/unit/commands/test_explore.py` finds it by a search.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import cli

PLAN = Path(__file__).parents[2] / "findings/unbounded-ledger/plan.json"
BOOKKEEPER = (
    "--cluster",
    "sim",
    "--nodes",
    "6",
    "--system",
    "sim-bookkeeper",
    "--workload",
    "log",
    "--protocol",
    "terms",
)
FEW = ("--retry-ms", "1000", "--answer-ms", "1000")
SMALL = (*BOOKKEEPER, *FEW, "--takeover-every", "1", "--rate", "1", "--max-in-flight", "1", "--plan", str(PLAN))
TWO, ONE = r"n\d and n\d have append \d+", r"n\d has append \d+"
ONE_HAS_ANOTHER = rf"entry \d+ diverges: ({TWO}, and {ONE}|{ONE}, and {TWO})"

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs a command with a store of its own. Returns its exit code and its output."""

    def code_and_output(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, "--store", str(tmp_path)])
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().out

    return code_and_output


def test_explain_tells_the_smallest_run_as_the_document_does(run: Run) -> None:
    """The new writer does not reach n2 when it takes over, so n2 still accepts the entry 1 of the old writer."""
    assert run("test", *SMALL, "--no-truncate")[0] == 1
    _, output = run("explain", "latest")
    assert "entry 1 diverges: n1 and n3 have append 12, and n2 has append 1" in output


def test_with_truncation_the_same_run_is_right(run: Run) -> None:
    """The new writer waits until n2 has deleted its entry 1."""
    code, output = run("test", *SMALL, "--truncate")
    assert code != 1
    assert "log               ✓ valid" in output


def test_a_hunt_with_a_plan_stores_its_find(run: Run) -> None:
    """The defaults by which a hunt draws faults do not contradict the plan."""
    code, output = run("hunt", *SMALL, "--no-truncate", "--blind", "--seed", "2", "--runs", "19", "--jobs", "1")
    assert code == 1
    assert output.startswith("2933997933079723612\tlog\tlabrys test ")


@pytest.mark.night
@pytest.mark.timeout(900)
def test_shrinking_ends_in_the_form_of_the_document(run: Run) -> None:
    """Of a run of a hunt, two cuts are left: one of the old writer, and one of the bookie that keeps its entry."""
    code, _ = run(
        "test", *BOOKKEEPER, *FEW, "--no-truncate", "--seed", "8455162242980684341", "--nemesis", "partition-random-node",
        "--fault-on", "0.1-0.4", "--fault-off", "0.05-0.3", "--fault-quiet", "1-3", "--rate", "4", "--time-limit", "6",
        "--takeover-every", "3",
    )  # fmt: skip
    assert code == 1
    code, output = run("shrink", "latest", "--seeds", "30", "--minutes", "10")
    assert code == 1
    words = shlex.split(output)[1:]
    assert len(json.loads(Path(words[words.index("--plan") + 1]).read_text())["faults"]) == 2
    assert run(*words)[0] == 1
    _, told = run("explain", "latest")
    assert re.search(ONE_HAS_ANOTHER, told)
