"""Programs of the shapes that the demos of Maelstrom have: they break what Labrys would like, and not what Maelstrom checks.

Each runs unaccused, and its warnings are counted. Each has a planted bug, with which the run is invalid.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import cli
from harness.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).parent / "programs"


class Shape(NamedTuple):
    """A program.

    Attributes:
        program: Its file.
        workload: The workload.
        part: The part of the verdict about it.
        warnings: The kinds of the warnings about it.
        bug: The argument that plants its bug.
        more: Further options of the run.
    """

    program: str
    workload: str
    part: str
    warnings: frozenset[str]
    bug: str
    more: Sequence[str] = ()


CUTS = ("--nemesis", "partition-random-halves", "--fault-on", "0.5-1", "--fault-off", "0.5-1", "--fault-quiet", "0.5-1")
SHAPES = (
    Shape(
        "handed_on.py", "lin-kv", "linearizable", frozenset({"foreign-sender"}), "--local-reads", ("--latency", "20")
    ),
    Shape("proxy.py", "lin-kv", "linearizable", frozenset({"foreign-sender"}), "--seq-kv"),
    Shape("asks_in_init.py", "g-counter", "g-counter", frozenset({"before-init"}), "--one-key"),
    Shape("text_numbers.py", "g-set", "g-set", frozenset(), "--once", CUTS),
    Shape("twice.py", "broadcast", "broadcast", frozenset(), "--own"),
    Shape("deep_ids.py", "unique-ids", "unique-ids", frozenset(), "--same"),
    Shape("shards.py", "kafka", "kafka", frozenset({"foreign-sender"}), "--own"),
)


def run(folder: Path, shape: Shape, *arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Carries out one run; returns the exit code, and the parts of its verdict."""
    command = " ".join([sys.executable, str(PROGRAMS / shape.program), *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main(
            [
                "test", "--cluster", "pipes", "--virtual", "--system", "maelstrom", "--store", str(folder), "--seed", "3",
                "--nodes", "3", "--time-limit", "3", "--rate", "15", "--workload", shape.workload, "--bin", command,
                *shape.more,
            ]
        )  # fmt: skip
    assert isinstance(ended.value.code, int)
    (results,) = folder.glob("*/2*/results.json")
    return ended.value.code, json.loads(results.read_bytes())["parts"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.program)
def test_what_maelstrom_accepts_is_no_violation(shape: Shape, tmp_path: Path) -> None:
    """The run is valid, and no operation fails. With the bug, the part of the workload is invalid, and `protocol` is not."""
    code, parts = run(tmp_path / "right", shape)
    protocol = parts["protocol"]
    assert (code, protocol["valid"], parts[shape.part]["valid"]) == (ExitCode.VALID, True, True), parts
    assert protocol["details"]["counts"] == {}  # type: ignore[index]
    assert set(protocol["details"]["warnings"]) == shape.warnings  # type: ignore[index]
    code, parts = run(tmp_path / "wrong", shape, shape.bug)
    assert (code, parts["protocol"]["valid"], parts[shape.part]["valid"]) == (ExitCode.INVALID, True, False), parts
