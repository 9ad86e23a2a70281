"""The mends of DLedger."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from clusters.kit.mending import Mends, numbered

if TYPE_CHECKING:
    from collections.abc import Mapping

DROPPED_LOGS: Final = 1  # the finding with which followers drop committed entries and get them again
DISK_FAILED: Final = 74  # the exit status of a node that ends by the mend of finding 22; EX_IOERR of sysexits(3)

# By the numbers of the findings in clusters/systems/dledger/findings/dledger-0.4.0.md.
MENDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        DROPPED_LOGS: "a new leader compares from the end of its log (findings 1 and 5)",
        2: "a follower can take a second snapshot, and accepts one that it has",
        4: "a leader that sends entries again forgets the requests without an answer",
        6: "a leader sends entries of older terms again too, if no answer comes",
        7: "a follower cuts its file at its own position",
        8: "a leader steps down on a late answer with a higher term",
        9: "after a snapshot, a leader compares the logs before it sends entries",
        10: "a log whose entries after a snapshot are all cut ends with the snapshot",
        11: "a node that starts again knows the term of the last entry in its snapshot",
        12: "a node votes by the end of its log also after a cut and after a snapshot",
        13: "a cut of the log releases the index, so that a later snapshot need not wait 10 s",
        14: "a comparison goes back entry by entry, so a follower drops only what contradicts the leader",
        15: "a follower refuses to truncate for a leader of an old term",
        16: "a node that starts again does not lead in the term in which it voted for itself",
        17: "a node that is killed while it stores its term keeps the term and the vote",
        18: "a node that loses its power keeps the term and the vote",
        19: "an entry gets space on the disk before it is written, so a full disk refuses it",
        20: "a node takes no term and gives no vote that it cannot store",
        22: "a node whose sync of the log fails ends, and one that starts writes and syncs the end of its log again",
        23: "a node counts and acknowledges an entry after it has synced the entry",
    }
)
PATCHES: Final = Path(__file__).parent / "patches"  # a folder for each version
SOURCES: Final = "io.openmessaging.storage:dledger:{version}"
DLEDGER: Final = Mends(
    software="DLedger",
    texts=MENDS,
    patches=numbered(PATCHES / "0.4.0", [*MENDS]),
    sources=MappingProxyType({"dledger": SOURCES}),
)

# DLedger 0.3.1.2 has these findings too, in the same methods.
OLD: Final = "0.3.1.2"
_BOTH: Final = (8, 17, 18, 19, 20, 22, 23)
OLDER: Final = Mends(
    software=f"DLedger {OLD}",
    texts=MappingProxyType({number: MENDS[number] for number in _BOTH}),
    patches=numbered(PATCHES / OLD, _BOTH),
    sources=DLEDGER.sources,
)
BY_VERSION: Final[Mapping[str, Mends]] = MappingProxyType({"0.4.0": DLEDGER, OLD: OLDER})


class Versioned(Protocol):
    """Options with a version of the library."""

    @property
    def library_version(self) -> str: ...  # noqa: D102 - the option has a help text


def patch(options: Versioned, number: str) -> str:
    """Returns the patch of a finding for the version of a run; empty if it has none."""
    return BY_VERSION[options.library_version].patch(number)
