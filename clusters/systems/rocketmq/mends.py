"""The mends of RocketMQ's controllers on DLedger, and of the DLedger 0.3.1.2 that they use."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.kit.mending import Mends, numbered
from clusters.systems.dledger.mends import OLD, OLDER, SOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping

# By the numbers of the findings in clusters/systems/rocketmq/findings/rocketmq-controller-5.3.3.md.
MENDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        4: "a controller that leads steps down on an answer with a higher term, also if a majority follows it",
        6: "an entry gets space on the disk before it is written, so a full disk refuses it",
        9: "a controller that leads decides no change while an earlier one waits in the log",
        10: "a controller that is killed or loses its power keeps the term and the vote",
        11: "a controller counts and acknowledges an entry after it has synced the entry",
        12: "a transfer of the leadership ends if the connection to its target fails",
        13: "a controller takes no term and gives no vote that it cannot store",
        15: "a controller whose sync of the log fails ends, and one that starts writes and syncs the end of its log again",
    }
)
CONTROLLER: Final = Mends(
    software="RocketMQ's controllers",
    texts=MENDS,
    patches=MappingProxyType(
        {
            **numbered(Path(__file__).parent / "patches", (9, 12)),
            4: OLDER.patches[8],
            6: OLDER.patches[19],
            10: (*OLDER.patches[17], *OLDER.patches[18]),
            11: OLDER.patches[23],
            13: OLDER.patches[20],
            15: OLDER.patches[22],
        }
    ),
    sources=MappingProxyType(
        {"controller": "org.apache.rocketmq:rocketmq-controller:{version}", "dledger": SOURCES.format(version=OLD)}
    ),
)


def patch(_: object, number: str) -> str:
    """Returns the patch of a finding, which is the same for all releases; empty if it has none."""
    return CONTROLLER.patch(number)
