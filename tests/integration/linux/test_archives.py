"""Archives of the classes of JVMs."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from clusters.sim.linux.archives import archive_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration
SOURCE = "class Hello { public static void main(String[] words) { System.out.println(1); } }"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """Returns a jar with one class."""
    (tmp_path / "Hello.java").write_text(SOURCE)
    subprocess.run(["javac", "-d", tmp_path, tmp_path / "Hello.java"], check=True)
    with ZipFile(tmp_path / "hello.jar", "w") as made:
        made.write(tmp_path / "Hello.class", "Hello.class")
    return tmp_path / "hello.jar"


def _sources(archive: Path, jar: Path) -> str:
    """Returns the line of a JVM that says where a class comes from."""
    words = (
        "-XX:+UseSerialGC",
        "-Xmx96m",
        f"-XX:SharedArchiveFile={archive}",
        "-Xlog:class+load",
        "-cp",
        str(jar),
        "Hello",
    )
    said = subprocess.run(["java", *words], check=True, capture_output=True, text=True).stdout
    (line,) = (line for line in said.splitlines() if " Hello source: " in line)
    return line


def test_an_archive_is_the_same_each_time_until_its_jar_changes(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seed must do the same with an archive that was made again. A JVM takes no class from it for another jar."""
    archives = []
    for cache in ("one", "other"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        archives.append(archive_of([jar], print))
    assert archives[0].read_bytes() == archives[1].read_bytes()
    assert _sources(archives[0], jar).endswith("shared objects file")

    os.utime(jar, (1, 1))
    assert "hello.jar" in _sources(archives[0], jar)
    again = archive_of([jar], print)
    assert again not in archives
    assert _sources(again, jar).endswith("shared objects file")
