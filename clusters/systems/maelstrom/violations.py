"""What the nodes of a run did against the protocol, and the part of the verdict about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted, one_line
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from harness.op import Value

PROTOCOL: Final = "protocol"
AGAINST: Final = "against_protocol"  # of the details; `results.measure.messages` reads it
MAX_KEPT: Final = 100
MAX_MESSAGE: Final = 300  # characters of a message in a sentence

MALFORMED: Final = "malformed"
FOREIGN: Final = "foreign-sender"
EARLY: Final = "before-init"
UNASKED: Final = "unasked-answer"
TWICE: Final = "second-answer"
UNFIT: Final = "unfit-answer"
NOWHERE: Final = "unknown-receiver"
CRASH: Final = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation.

    Attributes:
        kind: One of the constants of this module.
        node: The node.
        time_ns: The time in the world.
        line: The number of the line on stdout, from 1; None for a crash.
        why: What is wrong, as a clause about the node, e.g. `answered message 3 of c1 twice`.
        message: The line.
    """

    kind: str
    node: str
    time_ns: int
    line: int | None
    why: str
    message: str

    def __str__(self) -> str:
        where = "" if self.line is None else f" in line {self.line} of its stdout"
        said = f": {self.message[:MAX_MESSAGE]}" if self.message else ""
        return f"{self.node} {self.why}{where}, {self.time_ns / NS_PER_S:.3f} s after the start{said}"


class Ledger:
    """The violations of a run.

    Attributes:
        kept: The first violations, in the order of time.
        counts: The number of violations of each kind.
        checked: The number of messages that the nodes wrote.
        between: The number of those to other nodes and to themselves.
    """

    def __init__(self) -> None:
        self.kept: list[Violation] = []
        self.counts: Counter[str] = Counter()
        self.checked = 0
        self.between = 0

    def note(self, kind: str, node: str, *, time_ns: int, line: int | None, why: str, message: bytes | str) -> None:
        """Takes note of a violation."""
        self.counts[kind] += 1
        if len(self.kept) < MAX_KEPT:
            text = message if isinstance(message, str) else message[: 4 * MAX_MESSAGE].decode("utf-8", "replace")
            self.kept.append(
                Violation(
                    kind=kind, node=node, time_ns=time_ns, line=line, why=one_line(why),
                    message=one_line(text)[: 2 * MAX_MESSAGE],
                )
            )  # fmt: skip

    def part(self) -> Part:
        """Returns the part `protocol` of the verdict."""
        details: dict[str, Value] = {
            "messages": self.checked,
            "between_nodes": self.between,
            "counts": dict(sorted(self.counts.items())),
            AGAINST: [
                {
                    "kind": each.kind, "node": each.node, "seconds": each.time_ns / NS_PER_S, "line": each.line,
                    "why": each.why, "message": each.message,
                }
                for each in self.kept
            ],
        }  # fmt: skip
        total = self.counts.total()
        if total:
            more = f" There are {counted(total, 'violation')} in all: {self._listed()}." if total > 1 else ""
            return Part(name=PROTOCOL, verdict=Verdict.INVALID, reason=f"{self.kept[0]}.{more}", details=details)
        if not self.checked:
            return Part(name=PROTOCOL, verdict=Verdict.UNKNOWN, reason="The nodes wrote no message.", details=details)
        reason = f"All {counted(self.checked, 'message')} of the nodes followed the protocol."
        return Part(name=PROTOCOL, verdict=Verdict.VALID, reason=reason, details=details)

    def _listed(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in self.counts.most_common())
