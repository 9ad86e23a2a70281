"""What the compiler of mends makes of the released sources without a patch, for tests of the mends in systems."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from typing import TYPE_CHECKING, Final

from clusters.kit.mending import RECOMPILE, SOURCES, released_sources
from clusters.kit.patches import changes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clusters.kit.mending import Mends
    from harness.builds import Artifact

# The numbers of constants, the offsets of instructions, the names of lambdas, and the class that a method of a buffer returns.
_DIFFERS: Final = (
    (r"#\d+(, +\d+)?", ""), (r"\bldc_w\b", "ldc"), (r"^ *-?\d+: ", ""), (r"^( *(?:if\w*|goto\w*|default:)\s+)\d+$", r"\1"),
    (r"^ *\d+$", ""), (r"^( +\d+){3}", ""), (r"lambda\$\w+\$", "lambda"), (r"\)Ljava/nio/\w*Buffer;", ")"), (r" +", " "),
)  # fmt: skip


def assert_compiles_alike(mends: Mends, released: Artifact, folder: Path) -> None:
    """Asserts that the classes of each file that has a patch have the released instructions, if compiled without the patch.

    Enums, which newer compilers fill in a method of its own, are left out, and methods that try with resources.
    """
    names: set[str] = set()
    for change in (change for number in mends.texts for change in changes(mends.patch(str(number)))):
        coordinates = mends.sources[change.module].format(version=released.provenance.version)
        source = folder / "sources" / change.path
        source.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(released_sources(coordinates, print) / change.path, source)
        names.add(change.path.removesuffix(".java"))
    paths = (SOURCES / RECOMPILE, released.path, folder / "again", folder / "sources")
    subprocess.run(["java", *map(os.fspath, paths)], cwd=folder, check=True, capture_output=True)
    compared = 0
    for jar in sorted(released.path.glob("*.jar")):
        with zipfile.ZipFile(jar) as content:
            classes = [
                name.removesuffix(".class")
                for name in content.namelist()
                if re.sub(r"(\$.*)?\.class$", "", name) in names
            ]
        if classes:
            before, after = code(jar, classes), code(folder / "again" / jar.name, classes)
            assert after == before
            compared += len(before)
    assert compared >= len(names)


def code(jar: Path, classes: Sequence[str]) -> dict[str, list[str]]:
    """Returns the instructions of each method of classes in a jar, by the declaration of the class, without what may differ."""
    words = ["javap", "-c", "-p", "-constants", "-cp", os.fspath(jar), *(name.replace("/", ".") for name in classes)]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for pattern, instead in _DIFFERS:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    listed = (part.partition("\n")[2].partition("\n") for part in text.split("Compiled from ")[1:])
    return {
        declared: [method for method in methods.split("\n\n") if ".addSuppressed:" not in method]
        for declared, _, methods in listed
        if "extends java.lang.Enum<" not in declared
    }
