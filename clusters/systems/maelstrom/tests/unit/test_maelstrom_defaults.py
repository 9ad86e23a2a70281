"""What a run of programs has without messages, and without options of the workload."""

from __future__ import annotations

from clusters.systems.maelstrom.violations import Ledger
from clusters.systems.maelstrom.workloads.named import GrowOnlyOptions
from harness.verdict import Verdict


def test_nodes_that_wrote_nothing_followed_no_protocol() -> None:
    """The part `protocol` is unknown."""
    part = Ledger().part()
    assert (part.verdict, part.reason) == (Verdict.UNKNOWN, "The nodes wrote no message.")


def test_a_read_that_has_an_element_twice_is_a_warning() -> None:
    """The checker of Maelstrom does not notice it; `--exact-reads` makes it a violation."""
    assert not GrowOnlyOptions().exact_reads
