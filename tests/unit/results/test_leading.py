"""The leaders of many groups have one line on a page."""

from __future__ import annotations

from typing import Any

from results.page.leading import led


def service(changes: int = 0, rivals: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns a service as `results.json` has it."""
    leaders = ["n1"] * (changes + 1)
    return {"leadership": {"changes": changes, "leaders": leaders, "terms": []}, "rival_leaders": list(rivals)}


def test_few_groups_have_a_line_each() -> None:
    """A service without a leader has none."""
    nobody = {"leadership": {"changes": 0, "leaders": [], "terms": []}, "rival_leaders": []}
    rows = led({"bookie": nobody, "voter": service(1), "broker a": service()})
    assert [(row["name"], row["text"]) for row in rows] == [
        ("voter", "1 change of leader"),
        ("broker a", "no change of leader"),
    ]


def test_many_groups_have_one_line_with_the_changes_and_the_rivals_of_all() -> None:
    """E.g. one group for each ledger."""
    groups = {f"client l{number}": service() for number in range(5)}
    assert [(row["name"], row["text"]) for row in led(groups)] == [("5 groups of client", "no change of leader")]
    groups |= {"client l1": service(2, ("two lead",)), "client l2": service(1)}
    (row,) = led({**groups, "bookie a": {**service(), "leadership": {"changes": 0, "leaders": [], "terms": []}}})
    assert (row["text"], row["rivals"]) == ("3 changes of leader in 2 groups", ["two lead"])
