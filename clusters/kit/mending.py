"""Mends: small changes of the classes of a released program, each of which removes a defect that Labrys found.

A mended program is an artifact of its own, so real nodes and the simulator run the same bytes. `mends/` has the program that
changes classes, and the folder of a system has the changes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.traits import Program

SOURCES: Final = Path(__file__).parent / "mends"
VERSION: Final = "0.1.0"
JAR: Final = "mends.jar"
MAIN: Final = "io.labrys.mends.Main"
FILES: Final = ("pom.xml", "src/main/**/*")
MENDED: Final = "mended"  # the folder of the mended jars, beside the released ones
ALL: Final = "all"
JARS: Final = "*.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """The source of changes: a folder with a Maven project, whose jar names its mends; see `Mends.java`.

    Attributes:
        name: The name of the jar, without `.jar`.
        sources: The folder.
        uses: The modules whose jars it needs beside that of the program.
    """

    name: str
    sources: Path
    uses: Sequence[Module] = ()

    def jars(self, tool: Path, say: Callable[[str], object]) -> Mapping[str, Path]:
        """Returns the jars of the modules that it uses, and then its own, by their names; builds those that the cache lacks.

        Args:
            tool: The jar of the program.
            say: Is called with a sentence about what goes on.

        Raises:
            InfrastructureError: One cannot be built.
        """
        used = {name: jar for module in self.uses for name, jar in module.jars(tool, say).items()}
        own = f"{self.name}.jar"
        built = jvm.maven_build(
            self.name, VERSION, self.sources, "package", "-DskipTests", product=f"target/{own}",
            files=FILES, tools=_tools(), parts={f"lib/{name}": jar for name, jar in {JAR: tool, **used}.items()},
        ).artifact(say)  # fmt: skip
        return {**used, own: built.path / own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mends:
    """The mends of a program.

    Attributes:
        program: Its name in the findings of its module, e.g. `my-store` of `my-store-1`.
        software: Its name in sentences.
        texts: What each mend does, by the number of the finding.
        module: The source of the changes.
    """

    program: str
    software: str
    texts: Mapping[int, str]
    module: Module

    @property
    def help(self) -> str:
        """Returns the help of the option `--mend`."""
        return (
            f"The findings of Labrys that are mended in {self.software}, e.g. 4: any of "
            f"{', '.join(map(str, self.texts))} with commas between them, or {ALL}. Without it, the nodes run the release."
        )

    def chosen(self, text: str) -> Sequence[int]:
        """Returns the numbers of the mended findings, in ascending order.

        Args:
            text: Numbers with commas between them, `all`, or an empty text.

        Raises:
            InputError: It is something else.
        """
        if not text:
            return ()
        if text == ALL:
            return tuple(self.texts)
        numbers = text.split(",")
        if not all(number in map(str, self.texts) for number in numbers) or len(set(numbers)) < len(numbers):
            raise InputError(
                f"--mend {text}: expected numbers of findings with commas between them, each once and one of "
                f"{', '.join(map(str, self.texts))}, or {ALL}"
            )
        return sorted(map(int, numbers))

    def further(self, text: str) -> Mapping[str, str]:
        """Returns each finding that a value of `--mend` leaves, with the value that mends it too.

        Args:
            text: As `chosen` takes it.

        Raises:
            InputError: It is something else.
        """
        chosen = self.chosen(text)
        left = [number for number in self.texts if number not in chosen]
        return {str(number): ",".join(map(str, sorted([*chosen, number]))) for number in left}

    def mended(
        self, released: Artifact, jar: str | None, numbers: Sequence[int], say: Callable[[str], object]
    ) -> Artifact:
        """Returns an artifact with mended jars instead of the released ones; builds it if the cache lacks it.

        Args:
            released: The artifact with the released program.
            jar: The name of the jar in both; None for all jars of the artifact.
            numbers: The numbers of the mended findings.
            say: Is called with a sentence about what goes on.

        Raises:
            InfrastructureError: It cannot be built.
        """
        from harness.builds import Build  # noqa: PLC0415 - `labrys test --help` needs no builds

        tool = jvm.maven_build(
            "mends", VERSION, SOURCES, "package", "-DskipTests", product=f"target/{JAR}", files=FILES, tools=_tools()
        ).artifact(say)  # fmt: skip
        program = tool.path / JAR
        path = os.pathsep.join(map(str, (program, *self.module.jars(program, say).values())))
        known = [f"{self.program}-{number}" for number in numbers]
        copied = (".", MENDED) if jar is None else (jar, f"{MENDED}/{jar}")
        return Build(
            name=released.provenance.name, version=released.provenance.version, sources=released.path,
            files=(jar or JARS,), command=("java", "-cp", path, MAIN, *copied, *known), product=MENDED,
            tools=(jvm.java(f"mending {self.software}"),),
            patches=[f"finding {number}: {self.texts[number]}" for number in numbers],
        ).artifact(say)  # fmt: skip


def _tools() -> Sequence[Program]:
    return (jvm.maven("building the mends"), jvm.compiler("building the mends"))
