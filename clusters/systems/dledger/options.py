"""What can be chosen about DLedger, as values and as options of the command line."""

from __future__ import annotations

from dataclasses import dataclass

import click

from harness.parameters import Whole

READ_MODES = ("read-index", "raft-log", "unsafe")
ROUTINGS = ("mixed", "pinned", "leader")


@dataclass(frozen=True, slots=True, kw_only=True)
class DLedgerOptions:
    """How the nodes and their clients are configured.

    Attributes:
        read_mode: How reads are made; see `READ_MODES`.
        routing: Which clients leave a node that does not lead; see `ROUTINGS`.
        snapshot_threshold: Log entries between snapshots; 0 makes none, as is the library's default.
        heartbeat_ms: The leader's heartbeat interval; an election starts after three missed ones.
        data_file_bytes: The size of one file of the log; small ones roll over often.
    """

    read_mode: str = "read-index"
    routing: str = "mixed"
    snapshot_threshold: int = 0
    heartbeat_ms: int = 500
    data_file_bytes: int = 4 * 1024 * 1024


_DEFAULT = DLedgerOptions()

# Named like the fields of DLedgerOptions.
OPTIONS = (
    click.option(
        "--read-mode",
        type=click.Choice(READ_MODES),
        default=_DEFAULT.read_mode,
        show_default=True,
        help="How a node makes sure that a read is recent; unsafe does not, and is the negative control.",
    ),
    click.option(
        "--routing",
        type=click.Choice(ROUTINGS),
        default=_DEFAULT.routing,
        show_default=True,
        help="Whether clients stay at their node, follow the leader, or half and half.",
    ),
    click.option(
        "--snapshot-threshold",
        type=Whole(0, 1_000_000),
        default=_DEFAULT.snapshot_threshold,
        show_default=True,
        help="Log entries between snapshots; 0 makes none.",
    ),
    click.option(
        "--heartbeat-ms",
        type=Whole(20, 60_000),
        default=_DEFAULT.heartbeat_ms,
        show_default=True,
        help="The leader's heartbeat interval; an election starts after three missed ones.",
    ),
    click.option(
        "--data-file-bytes",
        type=Whole(4096, 1 << 30),
        default=_DEFAULT.data_file_bytes,
        show_default=True,
        help="The size of one log file.",
    ),
)
