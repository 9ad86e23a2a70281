"""Debian packages for a system under test: unpacked once on this machine, copied to each node, with no service started.

`apt-get install` on a node starts the service, with a configuration of its own. So this downloads the packages, unpacks them
into a folder of the cache, and copies the folder to the nodes. Scripts of the packages do not run: there is no user, no
service, and no file outside the folder. Later runs use the same folder, so all runs test the same version.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.cache import appearing, cache, locked
from harness.errors import InfrastructureError, InputError, NodeError
from harness.remote.folders import PLACE, put_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.remote import Remote

TIMEOUT_S = 300.0
LOCK_TIMEOUT_S = 900.0
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?")
TREE, VERSIONS = "tree", "versions.json"
# The folders of libraries in a package, for the architectures that Labrys runs on.
LIBRARIES = tuple(
    f"{top}/{folder}"
    for top in ("usr/lib", "lib")
    for folder in ("x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu", "")
)
PROGRAMS = ("usr/bin", "usr/sbin", "bin", "sbin")


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianPackages:
    """Some packages that a system needs on its nodes.

    Attributes:
        name: The name of their folder on a node, e.g. `my-store`.
        packages: The names of the packages; `NAME=VERSION` for one version. Libraries that a node may lack belong here too.
    """

    name: str
    packages: Sequence[str]

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InputError(f"expected the name of a folder, such as my-store, not {self.name!r}")
        for package in self.packages:
            if not PACKAGE.fullmatch(package):
                raise InputError(f"expected the name of a Debian package, e.g. libaio1, not {package!r}")

    @property
    def root(self) -> str:
        """Returns the folder on a node that stands for `/` in the packages."""
        return f"{PLACE}/{self.name}"

    def path(self, inside: str) -> str:
        """Returns the path on a node of a file in the packages, e.g. of `/usr/bin/my-store`."""
        return f"{self.root}/{inside.lstrip('/')}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Returns the environment in which the programs find the libraries of the packages, for `Daemon.environment`."""
        return {"LD_LIBRARY_PATH": ":".join(self.path(folder).rstrip("/") for folder in LIBRARIES)}

    def versions(self) -> Mapping[str, str]:
        """Returns the version of each package, for `System.versions`; gets the packages if they are not here yet.

        Raises:
            InfrastructureError: The packages cannot be downloaded or unpacked.
        """
        versions: Mapping[str, str] = json.loads((self.fetch() / VERSIONS).read_text(encoding="utf-8"))
        return versions

    def install(self, remote: Remote) -> None:
        """Copies the unpacked packages to a node, if they are not there yet, and checks that it has all libraries.

        Raises:
            InfrastructureError: The packages cannot be downloaded or unpacked on this machine.
            NodeError: They cannot be copied, or the node lacks a library.
        """
        put_folder(remote, self.fetch() / TREE, self.root)
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environment.items())
        programs = " ".join(f"{self.path(folder)}/*" for folder in PROGRAMS)
        looked = remote.run(
            "set --\n"
            f'for program in {programs}; do [ -f "$program" ] && set -- "$@" "$program"; done\n'
            f'[ $# -eq 0 ] || {settings} ldd "$@" 2>&1 | grep "not found"; true'
        )
        lacking = sorted({line.split(" => ")[0].strip() for line in looked.stdout.splitlines()})
        if lacking:
            raise NodeError(
                remote.node,
                f"the programs of {', '.join(self.packages)} need what the node lacks: {'; '.join(lacking)}. Add the Debian "
                f"packages that have it; `apt-cache depends {self.packages[0].partition('=')[0]}` lists candidates",
            )

    def fetch(self) -> Path:
        """Returns the folder on this machine with the unpacked packages and their versions; makes it the first time.

        Raises:
            InfrastructureError: The packages cannot be downloaded or unpacked.
        """
        shelf = cache() / "debian"
        architecture = _run(["dpkg", "--print-architecture"], shelf.parent).strip()
        key = hashlib.sha256(json.dumps([sorted(self.packages), architecture]).encode()).hexdigest()[:16]
        folder = shelf / f"{self.name}-{key}"
        shelf.mkdir(parents=True, exist_ok=True)
        with locked(shelf / ".lock", timeout_s=LOCK_TIMEOUT_S):
            if not folder.is_dir():
                with appearing(folder) as made:
                    self._unpack(made)
        return folder

    def _unpack(self, made: Path) -> None:
        """Downloads and unpacks the packages in an empty folder."""
        archives = made / "archives"
        archives.mkdir()
        (made / TREE).mkdir()
        _run(["apt-get", "--quiet", "download", *self.packages], archives)
        versions = {}
        for archive in sorted(archives.glob("*.deb")):
            _run(["dpkg-deb", "--extract", str(archive), str(made / TREE)], made)
            shown = _run(["dpkg-deb", "--show", "--showformat", "${Package} ${Version}", str(archive)], made)
            package, _, version = shown.partition(" ")
            versions[package] = version
        shutil.rmtree(archives)
        (made / VERSIONS).write_text(json.dumps(versions), encoding="utf-8")


def _run(command: Sequence[str], folder: Path) -> str:
    """Runs a program on this machine and returns its output.

    Raises:
        InfrastructureError: It fails, or is not installed.
    """
    called = shlex.join(command)
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise InfrastructureError(
            f"{command[0]} is not on this machine; Debian packages can be unpacked on Debian and its relatives only"
        ) from None
    except subprocess.TimeoutExpired:
        raise InfrastructureError(f"`{called}` did not end within {TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        hint = "; `apt-get update` may be necessary" if command[0] == "apt-get" else ""
        raise InfrastructureError(f"`{called}` failed: {done.stderr.strip()[-500:]}{hint}")
    return done.stdout
