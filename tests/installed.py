"""A virtual environment outside of the repository, with a wheel of Labrys in it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DEADLINE_S = 600.0  # the time of an analysis on a busy machine
HERE = frozenset({"PYTHONPATH", "VIRTUAL_ENV"})  # what leads back to the repository


class Installed:
    """A virtual environment, and an empty folder in which commands run.

    Attributes:
        folder: The folder of both.
        work: The empty folder.
        python: The Python of the environment.
    """

    def __init__(self, folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        """Makes them.

        Args:
            folder: A new folder.
            environment: The variables of all commands; None for those of this process.
        """
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        venv.create(folder / "venv", with_pip=False)
        self.python = folder / "venv" / "bin" / "python"
        self._environment = environment

    def run(self, *command: str, codes: tuple[int, ...] = (0,), **more: str) -> str:
        """Runs a command in the empty folder, with more variables. Returns its standard output."""
        variables = os.environ if self._environment is None else self._environment
        ended = subprocess.run(
            command,
            cwd=self.work,
            env={**{name: value for name, value in variables.items() if name not in HERE}, **more},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert ended.returncode in codes, f"{command} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    @property
    def packages(self) -> str:
        """Returns the folder of the environment's packages."""
        return self.run(str(self.python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()

    def borrow(self) -> None:
        """Gives the environment the dependencies of the one that runs the tests. Its own packages go first."""
        Path(self.packages, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def pip(self, *arguments: str) -> None:
        """Installs a package into the environment, from this machine only."""
        pip = (sys.executable, "-m", "pip", "--quiet", "--python", str(self.python), "install")
        self.run(*pip, "--no-index", "--no-deps", "--no-build-isolation", *arguments)

    def labrys(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Runs the installed command."""
        return self.run(str(self.python.with_name("labrys")), *arguments, codes=codes)
