"""Puts a run that is unknown, or that broke off, down to the test, the machine or the system.

The first part that lacks something decides, and the sentence names the rule, so that a reader can disagree. A control node
that was behind comes first, because then other parts lack what it did not see. What no rule covers is put down to the test: it
is Labrys that did not decide.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harness.outcome import behind
from harness.parts import LOG_PATTERNS, OWN_PARTS
from harness.reached import RECOVERED
from harness.states import REPLICAS_EQUAL
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.verdict import Part
    from results.record.signatures import Blame

Rule = tuple["Blame", str]

BEHIND: Final[Rule] = ("machine", "the control node was behind")
NO_VERDICT: Final[Rule] = ("machine", "the run ended without a verdict, as after a kill or a crash of the machine")
UNDECIDED: Final[Rule] = ("test", "Labrys did not decide the part, and no rule says whose part it is")

_BY_PART: Final[Mapping[str, Rule]] = {
    "faults-effective": ("test", "a kind of fault of the plan took no effect that was seen"),
    "reads-saw-writes": ("test", "the reads of the workload saw too little"),
    "client-errors": ("test", "the client does not handle an error"),
    "repeatable": ("test", "the program does what no seed repeats"),
    OWN_PARTS: ("test", "code of the system under test's package failed"),
    LOG_PATTERNS: ("machine", "logs of nodes could not be collected"),
    "progress": ("system", "clients got no answer while or after faults were on"),
    "final-reads": ("system", "a node did not answer the reads after healing"),
    REPLICAS_EQUAL: ("system", "replicas did not come to one applied index"),
    RECOVERED: ("system", "clients got no answer, neither during the workload nor after it"),
}
_MACHINE: Final = re.compile(
    r"No space left|Cannot allocate memory|memory|SSH|ssh|connection to|namespace|iptables|disk of this machine"
    r"|`[^`]+` (?:failed|did not end)|could not be (?:made|written|created)|InfrastructureError|hypervisor"
)
_SYSTEM: Final = re.compile(
    r"did not (?:start|serve|come back)|does not serve|not ready|no leader|until_ready|ended by itself"
)
_TEST: Final = re.compile(r"correct the (?:system|workload|client|fault)|expected |interrupted")


def blame_of(parts: Sequence[Part]) -> Rule:
    """Returns what an unknown run, or one that broke off, is put down to, and the rule as a clause.

    Args:
        parts: The parts of its verdict.
    """
    if behind(parts) is not None:
        return BEHIND
    lacking = [part for part in parts if part.verdict is Verdict.UNKNOWN and part.decides]
    for part in lacking:
        if part.name == "completed":
            return _of_error(part.reason)
    for part in lacking:
        if part.name in _BY_PART:
            return _BY_PART[part.name]
    return UNDECIDED


def _of_error(reason: str) -> Rule:
    """Returns what an error is put down to, by its words."""
    first = reason.partition("\n")[0]
    if first.startswith(("The run ended before its verdict", "The run is not finished")):
        return NO_VERDICT
    if first.startswith("The run was interrupted"):
        return "test", "a person ended the run"
    if _TEST.search(first):
        return "test", "the error names code or input of the test"
    if _SYSTEM.search(first):
        return "system", "the error says that the system does not serve"
    if _MACHINE.search(first):
        return "machine", "the error names the machine, the network or a tool"
    return "test", "the run broke off with an error that no rule covers"
