"""The wheel, installed outside of the repository, does everything; and it finds the system of a package that `new` has written.

The virtual environment borrows the dependencies of the one that runs the tests, since only Labrys itself is tested here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
DEADLINE_S = 600.0  # the time of an analysis on a busy machine


class Installed:
    """A virtual environment with the wheel in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        venv.create(folder / "venv", with_pip=False)
        self.python = folder / "venv" / "bin" / "python"

    def run(self, *command: str, codes: tuple[int, ...] = (0,)) -> str:
        """Runs a command in an empty folder. Returns its standard output."""
        clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        ended = subprocess.run(
            command, cwd=self.work, env=clean, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert ended.returncode in codes, f"{command} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def pip(self, *arguments: str) -> None:
        """Installs a package into the environment, from this machine only."""
        pip = (sys.executable, "-m", "pip", "--quiet", "--python", str(self.python), "install")
        self.run(*pip, "--no-index", "--no-deps", "--no-build-isolation", *arguments)

    def labrys(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Runs the installed command."""
        return self.run(str(self.python.with_name("labrys")), *arguments, codes=codes)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Builds the wheel and installs it."""
    folder = tmp_path_factory.mktemp("wheel")
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "build", "--quiet", "--release", "--out", folder / "dist"],
        cwd=ROOT,
        check=True,
        timeout=DEADLINE_S * 2,
    )
    found = Installed(folder / "elsewhere")
    (wheel,) = (folder / "dist").glob("labrys-*.whl")
    found.pip(str(wheel))
    packages = found.run(str(found.python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(packages, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    place = found.run(str(found.python), "-c", "import harness; print(harness.__file__)")
    assert place.startswith(packages), "the modules must be those of the wheel"
    return found


def test_a_new_workload_is_found_after_its_installation(installed: Installed) -> None:
    """Its own tests pass at once, and it checks a history."""
    installed.labrys("new", "workload", "shop-orders")
    installed.pip("./shop-orders")
    installed.run(str(installed.python), "-m", "pytest", "-q", "shop-orders")
    listed = {row["name"]: row for row in json.loads(installed.labrys("workloads", "--format", "json"))}
    assert listed["shop-orders"]["package"] == "shop-orders"


def test_a_new_system_is_tested_on_real_nodes(installed: Installed) -> None:
    """Its own tests pass at once; it is tested, and the run is checked, analyzed and reported."""
    installed.labrys("new", "system", "my-store")
    installed.pip("./my-store")
    installed.run(str(installed.python), "-m", "pytest", "-q", "my-store")
    told = installed.labrys(
        "test", "--system", "my-store", "--nodes", "3", "--time-limit", "8", "--seed", "1", "--sync", "--format", "json"
    )
    document = json.loads(told)
    assert document["valid"] is True, document["reason"]
    assert document["reproduce"].endswith("--system my-store --time-limit 8 --sync")
    run = document["run"]
    assert "valid" in installed.labrys("check", run)
    summary = json.loads(installed.labrys("analyze", run, "--format", "json", "--no-pictures"))
    assert summary["verdict"] == "valid"
    (installed.work / run / "report.html").unlink()
    installed.labrys("report", run)
    assert (installed.work / run / "report.html").is_file()
