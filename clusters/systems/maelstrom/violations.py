"""What the nodes of a run did against the protocol, and the part of the verdict about it.

Maelstrom lets some messages pass that its protocol does not have, and programs that it passes send them. They are warnings:
Labrys delivers them as Maelstrom does, counts them, and shows the first one. With `--strict` they are violations, and are
delivered all the same.
"""

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
AGAINST: Final = "against_protocol"  # of the details; `results.circumstances.messages` reads it
WARNED: Final = "warned"  # of the details
MAX_KEPT: Final = 100
MAX_MESSAGE: Final = 300  # characters of a message in a sentence

MALFORMED: Final = "malformed"
FOREIGN: Final = "foreign-sender"
EARLY: Final = "before-init"
UNASKED: Final = "unasked-answer"
TWICE: Final = "second-answer"
UNFIT: Final = "unfit-answer"
OTHER: Final = "other-transaction"
CODELESS: Final = "error-without-code"
NOBODY: Final = "unknown-sender"
NOWHERE: Final = "unknown-receiver"
CRASH: Final = "crash"
# Sources: `validate-msg` and `recv!` in net.clj and client.clj of Maelstrom. A sender is any node, service or client that
# there is; a client ignores a message that does not answer its request; an error of an unknown code is indefinite. The schemas
# in txn_list_append.clj and txn_rw_register.clj do not compare an answer with its request.
WARNINGS: Final = frozenset({FOREIGN, EARLY, UNASKED, TWICE, CODELESS, OTHER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation, or one warning.

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
    """The violations and the warnings of a run.

    Attributes:
        checked: The number of messages that the nodes wrote.
        between: The number of those to other nodes and to themselves.
    """

    def __init__(self, *, strict: bool = False) -> None:
        """Begins an empty one.

        Args:
            strict: Whether a warning is a violation.
        """
        self.checked = 0
        self.between = 0
        self._violations = _Noted()
        self._warnings = self._violations if strict else _Noted()

    def note(self, kind: str, node: str, *, time_ns: int, line: int | None, why: str, message: bytes | str) -> None:
        """Takes note of a violation or a warning."""
        text = message if isinstance(message, str) else message[: 4 * MAX_MESSAGE].decode("utf-8", "replace")
        (self._warnings if kind in WARNINGS else self._violations).add(
            Violation(
                kind=kind, node=node, time_ns=time_ns, line=line, why=one_line(why),
                message=one_line(text)[: 2 * MAX_MESSAGE],
            )
        )  # fmt: skip

    def part(self) -> Part:
        """Returns the part `protocol` of the verdict."""
        violations, warnings = self._violations, _Noted() if self._warnings is self._violations else self._warnings
        details: dict[str, Value] = {
            "messages": self.checked,
            "between_nodes": self.between,
            "counts": violations.sorted_counts(),
            "warnings": warnings.sorted_counts(),
            AGAINST: violations.listed(),
            WARNED: warnings.listed(),
        }
        if total := violations.counts.total():
            more = f" There are {counted(total, 'violation')} in all: {violations.kinds()}." if total > 1 else ""
            verdict, reason = Verdict.INVALID, f"{violations.kept[0]}.{more}"
        elif not self.checked:
            verdict, reason = Verdict.UNKNOWN, "The nodes wrote no message."
        else:
            verdict, reason = (
                Verdict.VALID,
                f"All {counted(self.checked, 'message')} of the nodes followed the protocol.",
            )
        if total := warnings.counts.total():
            if verdict is Verdict.VALID:
                reason = f"Maelstrom accepts all {counted(self.checked, 'message')} of the nodes."
            reason += (
                f" {counted(total, 'warning')} ({warnings.kinds()}), where the protocol says something else. The first: "
                f"{warnings.kept[0]}."
            )
        return Part(name=PROTOCOL, verdict=verdict, reason=reason, details=details)


class _Noted:
    """Violations or warnings.

    Attributes:
        kept: The first ones, in the order of time.
        counts: The number of each kind.
    """

    def __init__(self) -> None:
        self.kept: list[Violation] = []
        self.counts: Counter[str] = Counter()

    def add(self, noted: Violation) -> None:
        """Counts one, and keeps it if there are few."""
        self.counts[noted.kind] += 1
        if len(self.kept) < MAX_KEPT:
            self.kept.append(noted)

    def sorted_counts(self) -> dict[str, Value]:
        """Returns the counts in the order of the kinds."""
        return dict(sorted(self.counts.items()))

    def kinds(self) -> str:
        """Returns the counts as text."""
        return ", ".join(f"{count} {kind}" for kind, count in self.counts.most_common())

    def listed(self) -> list[Value]:
        """Returns those that were kept, as JSON."""
        return [
            {
                "kind": violation.kind, "node": violation.node, "seconds": violation.time_ns / NS_PER_S, "line": violation.line,
                "why": violation.why, "message": violation.message,
            }
            for violation in self.kept
        ]  # fmt: skip
