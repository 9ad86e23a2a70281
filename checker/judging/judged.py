"""The result of a judge for a history, as data, with the names of `checker.result.Analysis`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checker.judging import UNTESTED
from checker.result import EMPTY
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.formats.read import History
    from harness.op import Operation
    from harness.verdict import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The result of a judge for a history.

    Attributes:
        history: The history; without operations if it was read as arrays.
        part: The part of the verdict.
        operations: The number of operations.
        seconds: Wall time of the check.
        read_s: The duration of reading, in seconds.
    """

    history: History
    part: Part
    operations: int
    seconds: float
    read_s: float

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole history."""
        return self.part.verdict

    @property
    def analyzers(self) -> Sequence[str]:
        """The name of the judge."""
        return [self.part.name]

    @property
    def weakened(self) -> Mapping[str, int]:
        """Nothing: only models have conventions."""
        return {}

    @property
    def shown(self) -> Sequence[Operation]:
        """The operations of the first counterexample; none if there is none."""
        return self.part.counterexamples[0].operations if self.part.counterexamples else ()

    @property
    def cause(self) -> str | None:
        """Why the verdict is unknown; None if it is not."""
        if self.part.verdict is not Verdict.UNKNOWN:
            return None
        return str(self.part.details.get("cause", UNTESTED)) if self.operations else EMPTY

    def to_json(self) -> dict[str, Any]:
        """Returns the result as JSON values, with the names of `checker.result.Analysis`."""
        details = self.part.details
        first = details.get("counterexample") or {}
        result: dict[str, Any] = {
            "valid": self.part.verdict.as_json,
            "workload": self.part.name,
            "analyzer": self.part.name,
            "operations": self.operations,
            "seconds": self.seconds,
            "explanation": self.part.reason,
            "counts": details["counts"],
            "figures": details["figures"],
        }
        if self.part.verdict is Verdict.UNKNOWN:
            result["cause"] = self.cause
        if first:
            result |= {"key": first["key"], "kind": first["kind"], "op": first["op"]}
            result["counterexample"] = first["operations"]
            result["violations"] = details["violations"]
        if self.history.keyed:
            result["keys"] = {"total": details["keys"], **details["verdicts"]}
            result["failures"] = [str(key) for key in details.get("invalid_keys", [])]
            result["unknowns"] = [str(key) for key in details.get("unknown_keys", [])]
        return result
