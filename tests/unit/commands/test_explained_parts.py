"""`labrys explain` of parts that compare nodes: reports, faults, votes, and what the nodes loaded from their disks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import cli
from harness.errors import ExitCode
from tests.examples import SIMULATED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("without_plots")
TWO_LEADERS = (
    "--seed 4306362308390411986 --bug two-votes-in-a-term --nemesis leader-kill,partition-random-halves --fault-on 1-2 "
    "--fault-off 1-1 --fault-quiet 1-1 --rate 10 --time-limit 10"
)
LOST_ENTRIES = (
    "--seed 9163963927233727373 --bug committed-entries-cut --nemesis kill:leader --fault-on 0.03-0.4 --fault-off 0.05-0.6 "
    "--fault-quiet 1-3 --fault-wait 0.5 --rate 20 --time-limit 12 --no-pre-vote --snapshot-entries 5 --patience-ms 300 "
    "--hot-share 1"
)


@pytest.mark.parametrize(
    ("options", "part", "seen"),
    [
        (
            TWO_LEADERS,
            "one-leader-per-term",
            [
                r"The nodes that reported that they led:",
                r"kill \(fault \d\) begins on n\d",
                r"n\d reported that it was the leader in term",
            ],
        ),
        (
            LOST_ENTRIES,
            "raft-invariants",
            [
                r"breaches:\n +value\n +The log of n2 lost committed entries",
                r"kill \(fault 4\) begins on n5",
                r"n5 logs: loads term 6, a vote for n5, entries 87 to 91 and a snapshot up to 87",
                r"the log of n3 ends at 114, and ended at 116 before",
            ],
        ),
    ],
)
def test_a_part_that_compares_nodes_shows_what_happened(
    options: str, part: str, seen: list[str], tmp_path: Path
) -> None:
    """The states of the nodes stand between the events, each vote names the candidate, and faults have their nodes."""
    where = ["--store", str(tmp_path)]
    test = ["test", "--cluster", "sim", "--system", SIMULATED, *options.split(), *where]
    assert CliRunner().invoke(cli.labrys, test).exit_code == ExitCode.INVALID
    told = CliRunner().invoke(cli.labrys, ["explain", "latest", *where])
    assert told.exit_code == ExitCode.VALID
    assert f"✗ {part}: invalid" in told.stdout
    for pattern in [*seen, r"n\d logs: asks for votes in term \d", r"node +is +term +last entry +committed"]:
        assert re.search(pattern, told.stdout), (pattern, told.stdout)
    votes = re.findall(r"(n\d) logs: votes for (n\d) in term (\d+)", told.stdout)
    twice = {
        (voter, term)
        for voter, _, term in votes
        if len({who for own, who, vote_term in votes if (own, vote_term) == (voter, term)}) > 1
    }
    assert bool(twice) == (part == "one-leader-per-term")
