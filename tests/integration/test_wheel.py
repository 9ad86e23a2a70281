"""The wheel, installed outside of the repository, does everything; and it finds the system of a package that `new` has written.

The virtual environment borrows the dependencies of the one that runs the tests, since only Labrys itself is tested here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.examples import DEFAULT, SIMULATED
from tests.installed import Installed

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Installs the wheel."""
    copy = Installed(tmp_path_factory.mktemp("wheel") / "elsewhere")
    copy.pip(str(wheel))
    copy.borrow()
    path = copy.run(str(copy.python), "-c", "import harness; print(harness.__file__)")
    assert path.startswith(copy.packages), "the modules must be those of the wheel"
    return copy


def test_the_wheel_has_the_suites_of_systems_and_not_their_tests(wheel: Path) -> None:
    """A user reads the page of a system and runs its suites. Of the findings there are the plans, which suites use."""
    names = {name for name in ZipFile(wheel).namelist() if name.startswith("clusters/systems/")}
    kept = ("README.md", "suites/*.toml", "findings/*/plan.json")
    assert {
        str(path.relative_to(ROOT)) for pattern in kept for path in ROOT.glob(f"clusters/systems/*/{pattern}")
    } <= names
    inner = [name.split("/")[3:] for name in names]
    assert [path for path in inner if path[:1] == ["tests"]] == []
    assert {path[-1] for path in inner if path[:1] == ["findings"]} == {"plan.json"}


def test_a_suite_of_the_wheel_has_a_name(installed: Installed) -> None:
    """`labrys suite NAME` finds it in the installed package."""
    assert f" --system {SIMULATED} " in installed.labrys("suite", f"{SIMULATED}-never-settle", "--dry-run")
    assert f"{SIMULATED}-never-settle" in installed.labrys("suite", "--help")


def test_the_wheel_carries_the_default_system(installed: Installed, tmp_path: Path) -> None:
    """On a machine without Maven and with an empty cache, the artifact is that of the wheel, with its digest and provenance."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "tar", "sha256sum", "cut"):
        (programs / name).symlink_to(str(shutil.which(name)))
    labrys = str(installed.python.with_name("labrys"))
    told = json.loads(
        installed.run(labrys, "build", "--format", "json", PATH=str(programs), XDG_CACHE_HOME=str(tmp_path))
    )
    assert told["path"].startswith(installed.packages)
    assert (Path(told["path"]) / f"{DEFAULT}-node.jar").is_file()
    assert told["version"] == "0.4.0"
    assert len(told["digest"]) == 64
    assert "mvn" in told["made"]


def test_a_new_workload_is_found_after_its_installation(installed: Installed) -> None:
    """Its own tests pass at once, and it checks a history."""
    installed.labrys("new", "workload", "shop-orders")
    installed.pip("./labrys-shop-orders")
    installed.run(str(installed.python), "-m", "pytest", "-q", "labrys-shop-orders")
    listed = {row["name"]: row for row in json.loads(installed.labrys("workloads", "--format", "json"))}
    assert listed["shop-orders"]["package"] == "labrys-shop-orders"


@pytest.mark.night
def test_a_new_system_is_tested_on_real_nodes(installed: Installed) -> None:
    """Its own tests pass at once; it is tested, and the run is checked, analyzed and reported."""
    installed.labrys("new", "system", "my-store")
    installed.pip("./labrys-my-store")
    installed.run(str(installed.python), "-m", "pytest", "-q", "labrys-my-store")
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
