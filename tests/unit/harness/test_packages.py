"""Debian packages are unpacked once on this machine, and copied to each node that does not have them."""

from __future__ import annotations

import shutil
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness import packages
from harness.errors import InfrastructureError, InputError, NodeError
from harness.packages import DebianPackages
from harness.remote.folders import digest, put_folder

if TYPE_CHECKING:
    from pathlib import Path

    from harness.remote import Remote

needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")


class Here:
    """A shell on this machine, as that of a local node; `blind` as on another machine: it does not see the source."""

    node = "n1"

    def __init__(self, blind: Path | None = None) -> None:
        self.blind = blind
        self.puts: list[str] = []

    def run(self, command: str, *, check: bool = True, **_: Any) -> Any:
        """Runs a command."""
        if self.blind is not None:
            command = command.replace(str(self.blind), "/nonexistent")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=check)
        return SimpleNamespace(stdout=done.stdout, stderr=done.stderr, status=done.returncode)

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copies a file."""
        self.puts.append(remote)
        shutil.copy(local, remote)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a program, a link and an empty folder."""
    made = tmp_path / "source"
    (made / "bin").mkdir(parents=True)
    (made / "empty").mkdir()
    (made / "bin" / "program").write_text("#!/bin/sh\necho works\n")
    (made / "bin" / "program").chmod(0o755)
    (made / "bin" / "other").symlink_to("program")
    return made


def test_a_node_that_sees_the_folder_gets_a_link(tmp_path: Path, source: Path) -> None:
    """Copies for five local nodes would take five times the memory."""
    here, there = Here(), tmp_path / "node" / "opt"
    put_folder(cast("Remote", here), source, str(there))
    assert there.is_symlink()
    assert subprocess.run([there / "bin" / "other"], capture_output=True, text=True, check=True).stdout == "works\n"


def test_another_machine_gets_a_copy_once(tmp_path: Path, source: Path) -> None:
    """The copy has the modes and links of the folder; a change on the node is undone by the next run."""
    other, there = Here(blind=source), tmp_path / "node" / "opt"
    for _ in range(2):
        put_folder(cast("Remote", other), source, str(there))
        assert not there.is_symlink()
        assert subprocess.run([there / "bin" / "other"], capture_output=True, text=True, check=True).stdout == "works\n"
    assert len(other.puts) == 1
    (there / "bin" / "program").write_text("#!/bin/sh\necho changed\n")
    put_folder(cast("Remote", other), source, str(there))
    assert len(other.puts) == 2
    assert digest(there) == digest(source)


@pytest.mark.parametrize("names", [["../etc"], ["store; reboot"], ["-oDpkg=x"], ["a"]])
def test_a_name_that_is_no_package_is_refused(names: list[str]) -> None:
    """The name becomes a word of a command."""
    with pytest.raises(InputError, match="expected the name of a Debian package"):
        DebianPackages(name="x", packages=names)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `apt-get` that "downloads" the package `greeter`; returns the file with its calls."""
    tree = tmp_path / "greeter"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: greeter\nVersion: 1:2.3-4\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: greets\n"
    )
    (tree / "DEBIAN" / "postinst").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tree / "DEBIAN" / "postinst").chmod(0o755)
    (tree / "usr" / "bin" / "greeter").write_text("#!/bin/sh\necho hello\n")
    (tree / "usr" / "bin" / "greeter").chmod(0o755)
    tools = tmp_path / "tools"
    tools.mkdir()
    calls = tmp_path / "calls"
    calls.touch()
    (tools / "apt-get").write_text(
        f'#!/bin/sh\necho "$*" >> {calls}\n'
        f'case "$*" in *greeter) dpkg-deb --build {tree} greeter_2.3-4_all.deb >/dev/null;; '
        "*) echo 'E: Unable to locate package' >&2; exit 100;; esac\n"
    )
    (tools / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "PLACE", str(tmp_path / "node"))
    return calls


@needs_dpkg
def test_packages_are_unpacked_once_and_no_script_of_them_runs(mirror: Path, tmp_path: Path) -> None:
    """Several nodes and later runs use the same folder; the script that would start a service does not run."""
    greeter = DebianPackages(name="greeter", packages=["greeter"])
    assert greeter.versions() == {"greeter": "1:2.3-4"}
    for _ in range(2):
        greeter.install(cast("Remote", Here()))
    assert mirror.read_text() == "--quiet download greeter\n"
    program = greeter.path("/usr/bin/greeter")
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "hello\n"
    assert not (tmp_path / "started").exists()


@needs_dpkg
def test_a_missing_library_is_named_with_the_node(mirror: Path) -> None:
    """A program would otherwise fail at its start, with a line in a log."""

    class Poor(Here):
        """A node whose loader finds no jemalloc."""

        def run(self, command: str, *, check: bool = True, **_: Any) -> Any:
            """Answers for `ldd`."""
            if "ldd" in command:
                return SimpleNamespace(stdout="\tlibjemalloc.so.2 => not found\n" * 2, status=0)
            return super().run(command, check=check)

    with pytest.raises(NodeError, match=r"n1.*the node lacks: libjemalloc\.so\.2\. Add the Debian packages"):
        DebianPackages(name="greeter", packages=["greeter"]).install(cast("Remote", Poor()))


@needs_dpkg
def test_a_package_that_apt_does_not_know_leaves_nothing(mirror: Path, tmp_path: Path) -> None:
    """The error has the words of apt, and the next try downloads again."""
    with pytest.raises(InfrastructureError, match=r"Unable to locate package; `apt-get update` may be necessary"):
        DebianPackages(name="nothing", packages=["nothing-here"]).fetch()
    assert [path.name for path in (tmp_path / "cache" / "labrys" / "debian").iterdir()] == [".lock"]


def test_a_machine_without_apt_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The helper works on Debian and its relatives only."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        InfrastructureError, match="dpkg is not on this machine; Debian packages can be unpacked on Debian"
    ):
        DebianPackages(name="x", packages=["greeter"]).fetch()
