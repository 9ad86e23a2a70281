"""The last confirmed entries that writers report, which never go back.

A process writes a ledger with one handle, and the last confirmed entry of a handle only rises (BookKeeper 4.17.3,
`LedgerHandle.sendAddSuccessCallbacks`). Readers may see it go back, because each asks other bookies; so only reports of the
writer count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.console.plain import counted
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.service import NodeStatus

NAME: Final = "confirmed-only-rises"
MOST_BREACHES: Final = 100
MOST_NAMED: Final = 10


class Confirmed:
    """The reports of all writers.

    Attributes:
        reports: How many there were.
    """

    def __init__(self) -> None:
        self.reports = 0
        self._highest: dict[tuple[str, int | str], int] = {}  # for each node and ledger
        self._breaches: list[str] = []

    def known(self, node: str) -> Mapping[int | str, int]:
        """Returns the highest reported entry of each ledger that a node writes, before it is asked again."""
        return {ledger: entry for (name, ledger), entry in self._highest.items() if name == node}

    def note(self, node: str, before: Mapping[int | str, int], statuses: Sequence[NodeStatus]) -> None:
        """Notes the statuses of a node.

        Args:
            node: Its name.
            before: What was known before it was asked; two questions at once may be answered in any order.
            statuses: Its statuses.
        """
        for status in statuses:
            ledger = (status.details or {}).get("ledger")
            entry = status.committed_index
            if not isinstance(ledger, int | str) or entry is None:
                continue
            self.reports += 1
            highest = before.get(ledger, -1)
            if entry < highest and len(self._breaches) < MOST_BREACHES:
                self._breaches.append(
                    f"{node} reported entry {highest} of ledger {ledger} as confirmed, and later entry {entry}"
                )
            self._highest[node, ledger] = max(entry, self._highest.get((node, ledger), -1))

    def part(self) -> Part:
        """Returns the extra part `confirmed-only-rises`."""
        breaches = self._breaches
        more = f" There are {len(breaches)} such cases." if len(breaches) > 1 else ""
        return Part.of(
            NAME,
            {"breaches": [*breaches[:MOST_NAMED]]} if breaches else None,
            held=f"The last confirmed entry of no writer went back, in {counted(self.reports, 'report')}.",
            untested=None if self.reports else "No writer reported a confirmed entry.",
            broken=f"{breaches[0]}.{more}" if breaches else None,
            extra=True,
        )
