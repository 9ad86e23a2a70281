"""Hunts find the proposal's divergence and bugs of the simulated BookKeeper, and its correct versions are valid.

The runs are those of `labrys hunt --system sim-bookkeeper --workload log OPTIONS --among KINDS --blind --seed 1`. Here only the
run is carried out that is known to find the bug. `clusters/systems/sim_bookkeeper/tests/unit/test_sim_bookkeeper.py` has
schedules that are written by hand. A find without kinds names its faults with `--nemesis`, so its runs differ only in the seed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.systems.sim_bookkeeper.bugs import TABLE, Bug
from clusters.systems.sim_bookkeeper.options import Protocol
from tests.catches.hunts import Hunt, assert_page, caught, unaccused

PAGE = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SYSTEM, SEED = "sim-bookkeeper", 1

# The defaults, which a hunt would draw otherwise.
CALM = "--retry-ms 200 --answer-ms 1000"

# Many short faults, many takeovers, and few repetitions leave entries on single bookies.
SHORT = "--time-limit 6 --rate 4 --takeover-every 3 --retry-ms 1000 --answer-ms 1000 --fault-on 0.1-0.4 --fault-off 0.05-0.3"

# A change of the ensemble can replace all three bookies.
SPARES = "--nodes 9 --ensemble 3 --time-limit 6 --rate 4 --takeover-every 3 --fault-on 0.1-0.4 --fault-off 0.05-0.3"
LOSSES = "--nemesis packet-loss,partition-random-node --retry-ms 50 --answer-ms 300"

# Many takeovers, fast repetitions, and clients that wait for them. Half of the packets to the bookies are lost, or the client
# nodes send late, or all bookies restart when a client node becomes the writer.
MANY = "--time-limit 8 --fault-quiet 0.2-1 --rate 6 --takeover-every 2"
HALF_LOST = (
    "--nemesis packet-loss:n1+n2+n3 --fault-options packet-loss.probability=0.5 --fault-on 1-2 --fault-off 0.2-0.5"
)
LATE = "--retry-ms 20 --answer-ms 4000 --fault-on 1-2 --fault-off 0.3-0.6"
RESTARTS = (
    "--nemesis kill:n1+n2+n3 --fault-trigger log-line:writes:n5 --fault-wait 1 --fault-on 0.1-0.4 --fault-off 0.05-0.3"
)

# For the options of a hunt, its first run that is invalid, and the kinds of faults that it draws from.
FINDS: dict[str, tuple[int, str]] = {
    f"--protocol terms --no-truncate --time-limit 12 --rate 4 {CALM}": (
        19,
        "packet-delay,partition-random-node,packet-loss",
    ),
    f"--bug fenced-is-fail --time-limit 12 {CALM}": (1, "packet-loss"),
    f"--bug cas-left-out --time-limit 12 {CALM}": (2, "packet-loss"),
    f"--bug acknowledged-before-sync --time-limit 12 {CALM}": (3, "power-loss,packet-loss"),
    f"--bug adds-not-fenced --time-limit 6 --rate 4 {CALM}": (1, "packet-loss"),
    f"--bug reads-without-asking --time-limit 6 --rate 4 {CALM}": (17, "partition-random-node"),
    f"--bug one-absence-ends-recovery --time-limit 6 --rate 4 {CALM}": (4, "packet-loss"),
    f"--bug acknowledged-out-of-order --time-limit 6 --rate 4 {CALM}": (10, "packet-loss"),
    f"--bug truncate-keeps-later --time-limit 6 --rate 4 {CALM}": (5, "packet-loss,partition-random-halves"),
    f"--bug recovered-not-written-back --protocol terms --time-limit 6 --rate 4 {CALM}": (
        2,
        "packet-loss,partition-random-halves",
    ),
    f"--protocol terms --no-truncate {SHORT}": (12, "packet-loss,partition-random-node"),
    f"--protocol terms --no-guarantee-write-quorum {SHORT}": (16, "packet-loss,partition-random-node"),
    f"--bug unconfirmed-reads {SHORT}": (179, "packet-loss,partition-random-node"),
    f"--bug refused-is-timeout {SHORT.replace('--retry-ms 1000', '--retry-ms 100')}": (
        1,
        "packet-loss,partition-random-node",
    ),
    f"--bug unknown-ledger-not-fenced {SHORT}": (1023, "packet-loss,partition-random-node"),
    f"--bug answers-of-replaced-count --protocol ledgers --retry-ms 100 {SPARES} --answer-ms 1000": (
        4,
        "packet-loss,partition-random-node",
    ),
    f"--bug pinned-are-replaced --retry-ms 20 --answer-ms 500 {SPARES}": (
        60,
        "packet-delay,packet-loss,partition-random-node",
    ),
    f"--bug recovery-reads-do-not-fence --protocol ledgers {HALF_LOST} --retry-ms 50 --answer-ms 2000 {MANY}": (12, ""),
    f"--bug truncates-again {LATE} {MANY}": (23, "packet-delay"),
    f"--bug fence-not-journalled {RESTARTS} {MANY} {CALM}": (6, ""),
    f"--protocol terms --no-clean-new-bookies {LOSSES} {SPARES}": (71, ""),
    f"--bug metadata-changed-in-recovery --protocol ledgers {LOSSES} {SPARES}": (235, ""),
}
CORRECT_RUNS = 2


@pytest.mark.parametrize("options", FINDS)
def test_a_mistake_is_found(options: str) -> None:
    """A part of the verdict is invalid, with a reason."""
    run, among = FINDS[options]
    hunt = Hunt(("--workload", "log", *options.split()), seed=SEED, guided=False, among=among or None, system=SYSTEM)
    caught(hunt, run)


@pytest.mark.parametrize("protocol", Protocol)
def test_the_correct_version_is_not_accused(protocol: Protocol) -> None:
    """Each protocol passes with all kinds of faults."""
    words = ("--workload", "log", "--protocol", str(protocol), "--time-limit", "6", "--rate", "4")
    hunt = Hunt(words, seed=SEED, system=SYSTEM)
    verdicts = unaccused(hunt, CORRECT_RUNS)
    assert verdicts["refused"] < CORRECT_RUNS, verdicts


def test_the_page_has_each_bug_and_each_find() -> None:
    """The tables have one row for each bug, and exactly the runs in this test."""
    assert_page(PAGE, TABLE, FINDS)
    assert set(TABLE) == set(Bug) - {Bug.NONE}
