"""The Java that runs the simulator of Java programs: which one it is, and which is not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.sim.jvm import javas
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path


def home(folder: Path, release: str) -> Path:
    """Makes the files of a Java that are looked for."""
    for name in ("bin/java", "lib/modules", "lib/jrt-fs.jar"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "release").write_text(release)
    return folder


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the homes of this machine, which has no other Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(javas, "HOMES", (tmp_path,))
    monkeypatch.setattr(javas, "PACKAGE", "no_such_package")
    return tmp_path


def test_java_17_runs_alone(places: Path) -> None:
    """A Java between 17 and the first one that is tested does not run."""
    old = home(places / "a", 'JAVA_VERSION="17.0.15"\n')
    home(places / "b", 'IMPLEMENTOR="x"\nJAVA_VERSION="21.0.1"\n')
    java, copied = javas.chosen(javas.installed())
    assert java == copied == javas.Java(version=17, home=old)
    assert javas.command(java, copied, ["-Xmx1g"], "sim.jar", "node.jar") == [
        f"{old}/bin/java", "-Xmx1g", "-jar", "sim.jar", "node.jar"
    ]  # fmt: skip


def test_a_later_java_has_continuations(places: Path) -> None:
    """It gets the home of Java 17. A link to a home counts once."""
    old, new = home(places / "a", 'JAVA_VERSION="17"'), home(places / "b", 'JAVA_VERSION="25.0.3"')
    (places / "c").symlink_to(new)
    usable = javas.installed()
    assert [java.version for java in usable] == [17, 25]
    java, copied = javas.chosen(usable)
    assert javas.command(java, copied, [], "sim.jar", "node.jar") == [
        f"{new}/bin/java", "-Dsimjvm.continuations=true", "-jar", "sim.jar", "node.jar", str(old)
    ]  # fmt: skip


def test_a_package_of_python_brings_one(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java of the machine with the same version comes first."""
    package = places / "packages" / "java_by_pip"
    brought = home(package / "java-runtime", 'JAVA_VERSION="25.0.2"')
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(javas, "PACKAGE", package.name)
    home(places / "a", 'JAVA_VERSION="17"')
    assert javas.chosen(javas.installed())[0].home == brought
    own = home(places / "b", 'JAVA_VERSION="25.0.3"')
    assert javas.chosen(javas.installed())[0].home == own


def test_java_home_comes_first(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a user can say whose classes are copied."""
    home(places / "a", 'JAVA_VERSION="17.0.1"')
    mine = home(places / "elsewhere" / "mine", 'JAVA_VERSION="17.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(mine))
    assert javas.chosen(javas.installed())[1].home == mine


def test_without_java_17(places: Path) -> None:
    """The error names what was found, and what to do. A folder that is no whole Java does not count."""
    with pytest.raises(InfrastructureError, match=r"needs a Java 17, whose classes it copies; found none\. Install"):
        javas.chosen(javas.installed())
    new = home(places / "b", 'JAVA_VERSION="25"')
    broken = home(places / "c", 'JAVA_VERSION="17"')
    (broken / "lib" / "modules").unlink()
    home(places / "d", "nothing")
    with pytest.raises(InfrastructureError, match=rf"found 25 in {new}\. "):
        javas.chosen(javas.installed())
