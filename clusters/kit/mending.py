"""Mends: small changes of the classes of a released program, each of which removes a defect that Labrys found.

A mend is a patch of the released sources; see `patches`. A build compiles the changed source files alone, against the released
jars, and all other classes keep their bytes. A mended program is an artifact of its own, so real nodes and the simulator run
the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from clusters.kit.patches import changed, changes
from harness.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.kit.patches import Change
    from harness.builds import Artifact

SOURCES: Final = Path(__file__).parent / "mends"
RECOMPILE: Final = "Recompile.java"
MENDED: Final = "mended"  # the folder of the mended jars, beside the released ones
CHANGED: Final = "changed"  # the folder of the changed source files
ALL: Final = "all"
JARS: Final = "*.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mends:
    """The mends of a program.

    Attributes:
        software: Its name in sentences.
        texts: What each mend does, by the number of the finding.
        patches: The files with the patches of each mend, by the number of the finding.
        sources: The group, the name and the version of the released sources, e.g. `org.example:my-store:1.2`, by the folder of
            their module in the authors' repository; `{version}` stands for the version of the program.
    """

    software: str
    texts: Mapping[int, str]
    patches: Mapping[int, Sequence[Path]]
    sources: Mapping[str, str]

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

    def patch(self, number: str) -> str:
        """Returns the patch of a finding as text; empty if it has none.

        Args:
            number: The number of the finding, in digits.
        """
        paths = {str(known): paths for known, paths in self.patches.items()}.get(number, ())
        return "".join(path.read_text(encoding="utf-8") for path in paths)

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
            InfrastructureError: It cannot be built, or a patch does not fit the released sources.
        """
        from harness.builds import Build  # noqa: PLC0415 - `labrys test --help` needs no builds

        compiler = jvm.compiler(f"mending {self.software}")
        with TemporaryDirectory(prefix="labrys-") as folder:
            parts = {RECOMPILE: SOURCES / RECOMPILE}
            for name, content in self._changed(released.provenance.version, numbers, say).items():
                path = parts[f"{CHANGED}/{name}"] = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return Build(
                name=released.provenance.name, version=released.provenance.version, sources=released.path,
                files=(jar or JARS,), command=("java", RECOMPILE, jar or ".", MENDED, CHANGED), product=MENDED, parts=parts,
                tools=(jvm.java(f"mending {self.software}"), compiler),
                patches=[f"finding {number}: {self.texts[number]}" for number in numbers],
            ).artifact(say)  # fmt: skip

    def _changed(self, version: str, numbers: Sequence[int], say: Callable[[str], object]) -> Mapping[str, bytes]:
        """Returns the changed source files by their path below the sources of their module."""
        of_file: dict[tuple[str, str], list[Change]] = {}
        for number in numbers:
            for change in changes(self.patch(str(number))):
                of_file.setdefault((change.module, change.path), []).append(change)
        folders = {
            module: released_sources(self.sources[module].format(version=version), say)
            for module in sorted({module for module, _ in of_file})
        }
        made = {}
        for (module, path), here in of_file.items():
            try:
                made[path] = changed((folders[module] / path).read_bytes(), here)
            except (OSError, ValueError) as error:
                raise InfrastructureError(f"the patches of {path} do not fit the released sources: {error}") from error
        return made


def numbered(folder: Path, numbers: Sequence[int]) -> Mapping[int, Sequence[Path]]:
    """Returns the patches of findings that have one file each, `NUMBER.patch` in a folder."""
    return {number: [folder / f"{number}.patch"] for number in numbers}


def released_sources(coordinates: str, say: Callable[[str], object]) -> Path:
    """Returns the folder with the released sources of a library; gets them if the cache lacks them."""
    _, name, version = coordinates.split(":")
    return jvm.maven_build(
        f"{name}-sources", version, SOURCES, "prepare-package", f"-Dreleased={coordinates}", product="target/sources",
        files=("pom.xml",), tools=(jvm.maven("getting released sources"), jvm.compiler("getting released sources")),
    ).artifact(say).path  # fmt: skip
