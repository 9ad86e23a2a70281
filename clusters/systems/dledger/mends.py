"""The mends of DLedger 0.4.0: small changes of its classes, each of which removes a defect that Labrys found.

A mended jar is an artifact of its own, so real nodes and the simulator run the same bytes. `mends/` has the changes.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.systems import jvm
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact

SOURCES: Final = Path(__file__).parent / "mends"
VERSION: Final = "0.1.0"
JAR: Final = "mends.jar"
MENDED: Final = "mended"  # the folder of the mended jar, beside the released one
ALL: Final = "all"
JAVA: Final = jvm.java("mending DLedger")
MAVEN: Final = jvm.maven("building the mends of DLedger")
COMPILER: Final = jvm.compiler("building the mends of DLedger")

DROPPED_LOGS: Final = 1  # the finding with which followers drop committed entries and get them again

# By the numbers of the findings in docs/findings/dledger-0.4.0.md.
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
    }
)
HELP: Final = (
    f"The findings of Labrys that are mended in the library, e.g. 1,4: any of {', '.join(map(str, MENDS))}, or {ALL}. "
    "Without it, the nodes run the released library."
)


def chosen(text: str) -> Sequence[int]:
    """Returns the numbers of the mended findings, in ascending order.

    Args:
        text: Numbers with commas between them, `all`, or an empty text.

    Raises:
        InputError: It is something else.
    """
    if not text:
        return ()
    if text == ALL:
        return tuple(MENDS)
    numbers = text.split(",")
    if not all(number in map(str, MENDS) for number in numbers) or len(set(numbers)) < len(numbers):
        raise InputError(
            f"--mend {text}: expected numbers of findings with commas between them, each once and one of "
            f"{', '.join(map(str, MENDS))}, or {ALL}"
        )
    return sorted(map(int, numbers))


def mended(released: Artifact, jar: str, numbers: Sequence[int], say: Callable[[str], object]) -> Artifact:
    """Returns an artifact with a mended jar instead of the released one; builds it if the cache lacks it.

    Args:
        released: The artifact with the released library.
        jar: The name of the jar in both.
        numbers: The numbers of the mended findings.
        say: Is called with a sentence about what goes on.

    Raises:
        InfrastructureError: It cannot be built.
    """
    from harness.builds import Build  # noqa: PLC0415 - `labrys test --help` needs no builds

    tool = jvm.maven_build(
        "dledger-mends", VERSION, SOURCES, "package", "-DskipTests", product=f"target/{JAR}",
        files=("pom.xml", "src/main/**/*"), tools=(MAVEN, COMPILER),
    ).artifact(say)  # fmt: skip
    known = [str(number) for number in numbers]
    return Build(
        name=released.provenance.name, version=released.provenance.version, sources=released.path, files=(jar,),
        command=("java", "-jar", str(tool.path / JAR), jar, f"{MENDED}/{jar}", *known), product=MENDED, tools=(JAVA,),
        patches=[f"finding {number}: {MENDS[number]}" for number in numbers],
    ).artifact(say)  # fmt: skip
