"""docs/guide/install.md, outside of the clone: an empty folder, an empty environment, no root and no network.

The environment borrows the dependencies of the one that runs the tests, since no package is fetched here.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

from tests.examples import DEFAULT, SIMULATED
from tests.installed import Installed
from tests.stand_ins import stand_in

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools" / "nightly"
SUITE = f"""
[defaults]
cluster = "sim"
system = "{SIMULATED}"
nemesis = "partition-random-halves"
time-limit = 40
rate = 5

[[test]]
name = "correct"

[[test]]
name = "negative-control"
bug = "read-without-quorum"
nemesis = "partition-leader"
time-limit = 60
expect = "invalid"
"""

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def stranger(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Installs the wheel with `install.sh`, as a stranger does. No variable leads back to the repository."""
    folder = tmp_path_factory.mktemp("outside")
    stand_in(folder / "bin", "python3", f'exec "{sys.executable}" "$@"')
    empty = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip takes it for: no isolation
    }
    installed = Installed(folder / "elsewhere", environment=empty)
    installed.borrow()  # pip, before the wheel needs its dependencies
    told = installed.run("sh", str(TOOLS / "install.sh"), str(installed.folder / "venv"), WHEEL=str(wheel))
    assert told.startswith("labrys"), told
    path = installed.run(str(installed.python), "-c", "import harness; print(harness.__file__)")
    assert path.startswith(installed.packages), "the modules must be those of the wheel"
    return installed


def test_the_wheel_has_all_that_it_needs(wheel: Path) -> None:
    """The kernel, the default system, sources in Java, the templates of packages and pages, the scripts, and the types."""
    files = set(zipfile.ZipFile(wheel).namelist())
    rooms = ("harness", "nemesis", "workloads", "checker", "clusters", "results", "commands")
    assert {f"{room}/py.typed" for room in rooms} <= files
    assert {
        "cli.py",
        "clusters/provision/node.sh",
        "clusters/local/node.sh",
        "results/page/templates/report.html",
        "checker/_kernel.pyi",
    } <= files
    java = [path.relative_to(ROOT) for kind in ("pom.xml", "*.java") for path in ROOT.glob(f"clusters/**/{kind}")]
    assert {str(path) for path in java if not {"test", "tests", "target"} & set(path.parts)} <= files
    packaged = [name.split("/", 3)[3] for name in files if re.match("clusters/systems/[^/]+/packaged/", name)]
    assert sorted(name.split("/", 2)[2] for name in packaged) == ["artifact.json", f"tree/{DEFAULT}-node.jar"]
    assert any(name.startswith("checker/_kernel.") and name.endswith(".so") for name in files)
    templates = ROOT / "commands" / "templates"
    parts = {path for path in templates.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {str(path.relative_to(ROOT)) for path in parts} <= files
    assert not {name for name in files if name.startswith(("tests/", "benchmarks/", "docs/"))}


def test_a_stranger_adds_a_system(stranger: Installed) -> None:
    """The printed lines work as they are; then Labrys knows the system, and mypy finds nothing in the package."""
    told = stranger.labrys("new", "system", "valkey")
    steps = [line.strip() for line in told.splitlines() if line.startswith("  ")]
    change, pip, tests, _, elsewhere = steps
    assert change == "cd labrys-valkey"
    assert elsewhere.startswith("pip install /"), "the wheel"
    stranger.run("sh", "-ec", f"{change}\n{pip}")
    assert " passed" in stranger.run("sh", "-ec", f"{change}\n{tests} -q")
    listed = {row["name"]: row["package"] for row in json.loads(stranger.labrys("systems", "--format", "json"))}
    assert listed["valkey"] == "labrys-valkey"
    told = stranger.run("sh", "-ec", f"{change}\n{stranger.python} -m mypy --strict .")
    assert "Success: no issues found" in told
    assert "--sync" in stranger.labrys("test", "--system", "valkey", "--help")


def test_a_stranger_runs_a_night(stranger: Installed) -> None:
    """The scripts of the clone work in a repository that has nothing but a suite."""
    suites = stranger.work / "suites"
    suites.mkdir()
    (suites / "own.toml").write_text(SUITE)
    labrys = str(stranger.python.with_name("labrys"))

    def script(name: str, *arguments: str) -> str:
        return stranger.run("sh", str(TOOLS / name), *arguments, LABRYS=labrys)

    script("night.sh", "suites/own.toml", "7", "night/own")
    script("pack.sh", "night/own")
    night = stranger.work / "night" / "own"
    assert (night / "exit-code").read_text() == "0\n"
    assert "2 of 2 cases were as expected" in (night / "summary.md").read_text()
    script("trend.sh", "trend", "night/own")
    assert "negative-control" in (stranger.work / "trend" / "index.html").read_text()
