"""Archives of the classes of JVMs: a JVM maps the classes of its jars, and need not read and verify them at each start.

This machine makes an archive once for each jar, with the JVM that the programs use; see `harness.builds`. A JVM ignores an
archive if a jar has another time than then.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.builds import Build
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCRIPT: Final = "archive_classes.py"
ARCHIVE: Final = "classes.jsa"
PURPOSE: Final = "archiving the classes of jars"
TOOLS: Final = (
    Program(name="java", package="openjdk-17-jre-headless", purpose=PURPOSE, build_only=True),
    Program(name="setarch", package="util-linux", purpose=PURPOSE, version_arguments=("--version",), build_only=True),
)


def archive_of(jars: Sequence[Path], say: Callable[[str], object]) -> Path:
    """Returns the archive of the classes of jars, which is made if it is not in the cache.

    Args:
        jars: The jars, in the order of the class path.
        say: Is called with a sentence about what goes on.

    Raises:
        InfrastructureError: There is no Java, or it does not make the archive.
    """
    states = [f"{jar}={jar.stat().st_size}={jar.stat().st_mtime_ns}" for jar in jars]
    artifact = Build(
        name="jvm-classes",
        version="1",
        sources=Path(__file__).parent,
        files=(SCRIPT,),
        command=(sys.executable, SCRIPT, ARCHIVE, *states),
        product=ARCHIVE,
        tools=TOOLS,
    ).artifact(say)
    return artifact.path / ARCHIVE
