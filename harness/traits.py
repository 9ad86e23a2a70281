"""What the class of a system says about it: the programs that it needs, lines of its logs, and what tests of it are for."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_OUTPUT = 200  # characters of a program's output in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that a system needs on its nodes; `labrys doctor` looks for it.

    Attributes:
        name: Its name on the PATH, e.g. `java`.
        package: The Debian package that has it.
        purpose: Its purpose, e.g. `running the store`.
        least_version: The minimum major version; None if any version works.
        version_pattern: A regular expression whose first group is the major version in what the program prints about itself.
        version_arguments: The arguments with which it prints its version, e.g. `version` for Go.
        build_only: Whether only a machine that builds the system needs it.
    """

    name: str
    package: str
    purpose: str
    least_version: int | None = None
    version_pattern: str = r"(\d+)"
    version_arguments: Sequence[str] = ("-version",)
    build_only: bool = False

    def version(self, output: str) -> int | None:
        """Returns the major version in what the program prints about itself; None if it has none."""
        match = re.search(self.version_pattern, output)
        return int(match[1]) if match else None

    def lacking(self, output: str | None) -> str:
        """Returns why a machine cannot use it; empty if it can.

        Args:
            output: What the program prints about its version; None if it is not on the PATH.
        """
        if output is None:
            return f"{self.name} is not on PATH"
        if self.least_version is None:
            return ""
        version = self.version(output)
        if version is not None and version >= self.least_version:
            return ""
        return f"{self.name} is not {self.least_version} or later: {' '.join(output.split())[:MAX_OUTPUT]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line of a log by which a process tells of an event, e.g. of a snapshot. Faults can begin with it.

    Attributes:
        path: The absolute path of the log; it is one of `Daemon.log_files`.
        pattern: An extended regular expression that matches in the line, as for `grep -E`.
        meaning: What the process tells, as a clause, e.g. `a node begins to save a snapshot`.
    """

    path: str
    pattern: str
    meaning: str


class Tier(enum.StrEnum):
    """What tests of a system are for."""

    FINDING = "finding"
    """Labrys found defects in its default release."""
    PROMISE = "promise"
    """It keeps what it promises, as far as was seen; known defects of older releases show that a test can tell."""
    CONTROL = "control"
    """It promises less than a test can ask, so violations are expected."""
    BENCH = "bench"
    """Labrys tries itself on it."""
