"""Published violations have the published verdict. The texts are ours: the same transactions, with other keys and values.

Sources, by their names below: issues of YugabyteDB, CockroachDB, Galera, Elle and elle-cli, and the shapes of AWDIT's tests.
Where the authors count the order of each session to their model, the model here has `strong-session` in its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.unit.checker.test_formats_transactional import decided

if TYPE_CHECKING:
    from pathlib import Path


class Published(NamedTuple):
    """A history, and the verdicts that follow from what was published.

    Attributes:
        workload: The workload that checks it.
        text: The history.
        valid: Models that allow it.
        invalid: Models that prohibit it.
    """

    workload: str
    text: str
    valid: tuple[str, ...]
    invalid: tuple[str, ...]


def edn(workload: str, *events: tuple[int, str, str]) -> str:
    """Returns events in EDN: the process, the type, and the value."""
    assert workload in {"list-append", "rw-register"}
    return "\n".join(
        f"{{:process {process}, :type :{kind}, :f :txn, :value {value}}}" for process, kind, value in events
    )


def whole(process: int, request: str, answer: str = "") -> list[tuple[int, str, str]]:
    """Returns a transaction that ends before the next one begins."""
    return [(process, "invoke", request), (process, "ok", answer or request)]


CASES = {
    "yugabytedb-11270": Published(
        "rw-register",
        "r(1,5,0,1)\nw(2,6,0,2)\nr(2,7,0,3)\nw(1,5,1,4)\nw(2,7,1,4)\n",
        ("causal-cerone", "serializable"),
        ("strong-session-snapshot-isolation", "strong-session-serializable"),
    ),
    "cockroach-76436": Published(
        "rw-register",
        "w(1,5,0,1)\nr(2,6,0,1)\nr(1,7,0,2)\nw(1,7,1,3)\nw(2,6,1,3)\n",
        ("causal-cerone", "serializable"),
        ("strong-session-snapshot-isolation", "strong-session-serializable"),
    ),
    "galera-609": Published(
        "rw-register",
        "w(1,5,0,1)\nr(1,5,0,2)\nr(2,6,0,2)\nr(1,5,1,3)\nw(2,6,1,3)\nw(1,7,1,3)\n",
        ("read-committed",),
        ("read-atomic", "causal-cerone", "snapshot-isolation", "serializable"),
    ),
    "galera-of-polysi": Published(
        "rw-register",
        "w(1,4,0,1)\nr(1,4,0,2)\nw(1,5,0,2)\nr(1,5,0,3)\nr(1,4,1,4)\nw(1,6,1,4)\nw(1,7,1,5)\n",
        ("read-atomic", "causal-cerone"),
        ("cursor-stability", "snapshot-isolation", "serializable"),
    ),
    "awdit-cycle-of-sessions": Published(
        "rw-register",
        "r 1 5\n-----\nw 2 6\n=====\nr 2 6\n-----\nw 1 5\n",
        ("read-committed", "serializable"),
        ("strong-session-read-committed", "strong-session-snapshot-isolation"),
    ),
    "awdit-fractured-read": Published(
        "rw-register",
        "w 1 5\nw 2 5\n=====\nw 1 6\nw 2 6\n=====\nr 1 5\nr 2 6\n",
        ("read-committed", "strong-session-read-committed"),
        ("read-atomic", "causal-cerone", "snapshot-isolation"),
    ),
    "awdit-causal-in-sessions": Published(
        "rw-register",
        "w 1 5\n-----\nw 1 6\n=====\nr 1 6\nw 2 7\n=====\nr 1 5\nr 2 7\n",
        ("read-atomic", "causal-cerone", "strong-session-read-committed"),
        ("strong-session-snapshot-isolation", "strong-session-serializable"),
    ),
    "awdit-long-fork": Published(
        "rw-register",
        "w 1 5\nw 2 5\n=====\nw 1 6\n-----\nr 1 6\nr 2 5\n=====\nw 2 6\n-----\nr 2 6\nr 1 5\n",
        ("causal-cerone", "parallel-snapshot-isolation"),
        ("snapshot-isolation", "serializable"),
    ),
    "elle-17": Published(
        "list-append",
        edn(
            "list-append",
            *whole(0, "[[:r 1 nil] [:r 2 nil]]", "[[:r 1 nil] [:r 2 [5]]]"),
            *whole(1, "[[:append 1 6]]"),
            *whole(1, "[[:r 2 nil]]", "[[:r 2 nil]]"),
            *whole(2, "[[:append 2 5]]"),
        ),
        ("snapshot-isolation", "serializable"),
        ("strong-session-snapshot-isolation", "strict-serializable"),
    ),
    "elle-8": Published(
        "rw-register",
        edn("rw-register", *whole(0, "[[:w 1 5]]"), *whole(0, "[[:r 1 nil]]", "[[:r 1 6]]")),
        (),
        ("read-uncommitted", "strict-serializable"),
    ),
    "elle-27": Published(
        "list-append",
        edn(
            "list-append",
            (0, "invoke", "[[:r 1 nil] [:r 2 nil]]"),
            *whole(1, "[[:append 1 5]]"),
            *whole(1, "[[:append 2 6]]"),
            (0, "ok", "[[:r 1 []] [:r 2 [6]]]"),
        ),
        ("serializable",),
        ("strong-session-serializable", "strict-serializable"),
    ),
    "elle-cli-47": Published(
        "rw-register",
        edn(
            "rw-register",
            *whole(1, "[[:w 1 5]]"),
            *whole(2, "[[:w 1 6]]"),
            *whole(1, "[[:r 1 nil]]", "[[:r 1 6]]"),
            *whole(2, "[[:r 1 nil]]", "[[:r 1 5]]"),
        ),
        ("serializable", "snapshot-isolation"),
        ("strict-serializable",),
    ),
}


@pytest.mark.parametrize(
    ("name", "model", "verdict"),
    [
        (name, model, verdict)
        for name, published in CASES.items()
        for verdict, models in (("valid", published.valid), ("invalid", published.invalid))
        for model in models
    ],
)
def test_a_published_violation_has_the_published_verdict(tmp_path: Path, name: str, model: str, verdict: str) -> None:
    """Under the stated model, and `valid` under each weaker one that allows it."""
    published = CASES[name]
    judged = decided(tmp_path, published.text, published.workload, f"consistency-model={model}")
    assert str(judged.verdict) == verdict
