"""What a system promises to the clients of a workload, and who says so.

A test is fair if it asks for nothing else. So the options of a workload default to what the system promises, and a report says
which promise was tested. An option that a user gives counts more than the promise; then the report names the option.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a system with certain options promises to the clients of a workload.

    Attributes:
        sentence: The promise as a sentence, with what is not promised, e.g. `Reads may be old.`
        source: Who makes it: the title of a document and its address.
        options: The values of the workload's options that ask for this and no more, by the names of their fields. Other options
            keep the defaults of the workload.
    """

    sentence: str
    source: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Handling(StrEnum):
    """What a system does with damaged files."""

    REPAIRS = "repairs"
    """A node with damaged files serves again, with what the other nodes have."""
    REFUSES = "refuses"
    """A node that reads damaged content ends, or takes no part, until somebody repairs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDamage:
    """What a system promises about damaged files. A silent wrong answer is invalid, whatever it promises.

    Attributes:
        handling: What a node with damaged files does.
        sentence: The promise as a sentence, with what is not promised.
        source: Who makes it: the title of a document and its address.
    """

    handling: Handling
    sentence: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseTested:
    """Which promise a run tested; `test.json` has its members.

    Attributes:
        promise: The promise as a sentence; None if the system does not say what it promises.
        source: Who makes it; None likewise.
        others: Options of the workload that ask for something else than the promise, as on the command line.
    """

    promise: str | None = None
    source: str | None = None
    others: tuple[str, ...] = ()

    def sentence(self, system: str, workload: str) -> str:
        """Returns the sentences for the first lines of a report."""
        asks = f" The test asks for something else: {' '.join(self.others)}." if self.others else ""
        if self.promise is None:
            return f"{system} does not say what it promises, so the test asks for the defaults of {workload}.{asks}"
        return f"{self.promise}{asks} By: {self.source}"
