"""All of a system is in its folder: few files outside of it name the system, and the registrations agree with the folders.

What counts is a file that somebody has to look at if a system is renamed or removed. It names a system if its path or its text
has the name of the folder as a word, in capitals or not, and with `-`, `_` or nothing between its parts. These files do not
count:

- records of what was: `CHANGELOG.md`, `docs/journal` and `docs/decisions`;
- folders of other systems: a system does not import another one, and its page may compare the two;
- `benchmarks`, which compare named programs;
- what a tool writes from the code, while a test or the tool holds that they agree: tables in the pages of `docs`,
  `docs/reference/system-reference.md`, pictures, and the stored results of `tests/unit/results/golden`.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.console import plugins

if TYPE_CHECKING:
    from harness.system import System

ROOT = Path(__file__).parents[3]
FOLDERS = ROOT / "clusters" / "systems"
SYSTEMS = sorted(path.parent.name for path in FOLDERS.glob("*/system.py"))
RECORDS = ("CHANGELOG.md", "docs/journal/", "docs/decisions/")
WRITTEN = ("docs/reference/system-reference.md", "docs/images/", "tests/unit/results/golden/")
TABLE = re.compile(r"<!-- table [\w-]+, made by tools/tables\.py -->.*?<!-- end of the table -->", re.DOTALL)

CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONFIGURATION["project"]
ROOMS = {"harness", "nemesis", "workloads", "checker", "clusters", "results", "commands", "cli"}

LIMIT = 8  # files outside of the folder that name a system


def pattern_of(system: str) -> re.Pattern[str]:
    """Returns what names a system: `sim_raft` is `sim-raft`, `SimRaft` and `sim_raft`, but `dledger` is not `dledger-log`."""
    longer = [name[len(system) :] for name in SYSTEMS if name.startswith(f"{system}_")]
    before = [name[: -len(system)] for name in SYSTEMS if name.endswith(f"_{system}")]
    more = "".join(f"(?!{name.replace('_', '[-_]?')})" for name in longer)
    less = "".join(f"(?<!{name.replace('_', sign)})" for name in before for sign in ("-", "_", ""))
    return re.compile(rf"(?i:(?<![a-z]){less}{system.replace('_', '[-_]?')}{more})(?![a-z])")


@functools.cache
def texts() -> dict[str, tuple[str, str]]:
    """Returns the path and the text of each file that counts, as they are and in small letters, by path."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    by_name = {}
    for name in listed.splitlines():
        path = ROOT / name
        if name.startswith((*RECORDS, *WRITTEN, "benchmarks/", "clusters/systems/")) or not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", errors="ignore")
        text = f"{name}\n{TABLE.sub('', text) if name.startswith('docs/') else text}"
        by_name[name] = text, text.lower()
    return by_name


# A test holds that the files below agree with the folders: together they count as one file.
REGISTRATIONS = frozenset({"pyproject.toml", "tools/nightly/gitlab-ci.yml"})


@pytest.mark.parametrize(
    ("system", "names", "others"),
    [
        (
            "dledger",
            ("DLedger's log", "DLedgerSystem", "dledger-0.4.0", "controller-dledger"),
            ("dledger-log", "DLedgerLog"),
        ),
        ("bookkeeper", ("BookKeeper 4.17", "bookkeeper"), ("sim-bookkeeper", "SimBookkeeper", "bookkeepers")),
        ("sim_raft", ("sim-raft", "SimRaft", "sim_raft"), ("a raft", "sim-rafts")),
        ("etcd", ("etcd-200", "EtcdOptions"), ("jetcd",)),
    ],
)
def test_a_name_is_a_word(system: str, names: tuple[str, ...], others: tuple[str, ...]) -> None:
    """In each spelling, and not as a part of another name."""
    assert [name for name in names if not pattern_of(system).search(name)] == []
    assert [name for name in others if pattern_of(system).search(name)] == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_few_files_outside_of_its_folder_name_a_system(system: str) -> None:
    """A new mention belongs into the folder, or the file is about all systems and gets the name from the folders."""
    pattern = pattern_of(system)
    own = Path(__file__).relative_to(ROOT)
    spelled = [system.replace("_", sign) for sign in ("-", "_", "")]  # a quick look before the pattern
    naming = {
        path
        for path, (text, lower) in texts().items()
        if any(name in lower for name in spelled) and pattern.search(text) and path != str(own)
    }
    registered = naming & REGISTRATIONS
    figure = len(naming - REGISTRATIONS) + bool(registered)
    assert figure <= LIMIT, "\n".join(sorted(naming))


def test_each_system_is_registered_by_its_folder() -> None:
    """Entry points lead to modules of folders, and each folder has one."""
    registered = {}
    for name, location in PROJECT["entry-points"]["labrys.systems"].items():
        module, _, kind = location.partition(":")
        *package, folder, _ = module.split(".")
        assert package == ["clusters", "systems"], location
        source = ROOT / f"{module.replace('.', '/')}.py"
        classes = {node.name for node in ast.walk(_parsed(source)) if isinstance(node, ast.ClassDef)}
        assert kind in classes, location
        registered[name] = folder
    assert set(registered.values()) == set(SYSTEMS)
    assert [name for name, folder in registered.items() if not name.startswith(folder.replace("_", "-"))] == []


def test_an_extra_has_what_the_folder_imports() -> None:
    """What is no dependency of Labrys is in the extra that the system names to its users, and the tests have it."""
    extras = PROJECT["optional-dependencies"]
    packages = metadata.packages_distributions()
    always, for_tests = _names(PROJECT["dependencies"]), _names(extras["dev"])
    for system in SYSTEMS:
        files = [path for path in (FOLDERS / system).rglob("*.py") if "tests" not in path.relative_to(FOLDERS).parts]
        imported = _with_kit({name for path in files for name in _imported(path)})
        modules = {name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names) - ROOMS
        needed = {name for module in modules for name in packages.get(module, [module])} - always
        extra = system.replace("_", "-")
        libraries = {
            name for kind in _classes(system) for module, brings in kind.libraries.items() if brings == extra
            for name in packages.get(module, [module])
        }  # fmt: skip
        assert libraries == needed, system
        assert _names(extras.get(extra, [])) == needed, system
        assert needed <= for_tests, system
    assert set(extras) - {"dev", "docs", "java", "spark"} <= {system.replace("_", "-") for system in SYSTEMS}


def test_the_contracts_of_imports_are_about_all_folders() -> None:
    """They name no system, but for an exception."""
    contracts = {contract["name"]: contract for contract in CONFIGURATION["tool"]["importlinter"]["contracts"]}
    (independent,) = [contract for contract in contracts.values() if contract["type"] == "independence"]
    assert independent["modules"] == ["clusters.systems.*"]
    excepted = re.findall(r"clusters\.systems\.(\w+)", " ".join(independent["ignore_imports"]))
    assert set(excepted) <= set(SYSTEMS)


def test_the_folders_of_tests_have_the_kinds_of_tests_that_labrys_has() -> None:
    """Others would belong to no group (`tests/scheduling.py`)."""
    kinds = {path.name for path in FOLDERS.glob("*/tests/*") if path.is_dir() and path.name != "__pycache__"}
    assert kinds <= {"unit", "integration", "catches"}


def test_the_runs_by_seed_that_nights_compare_are_of_systems() -> None:
    """The workflow takes the name of the folder for that of the system."""
    names = PROJECT["entry-points"]["labrys.systems"]
    files = sorted(FOLDERS.glob("*/tests/by-seed.toml"))
    assert files
    for file in files:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        assert document.keys() == {"options", "night"}, file
        assert file.parents[1].name in names, file


def _classes(system: str) -> list[type[System]]:
    """Returns the classes of a folder that entry points name."""
    places = PROJECT["entry-points"]["labrys.systems"].items()
    return [
        plugins.load(plugins.SYSTEMS, name)
        for name, location in places
        if location.startswith(f"clusters.systems.{system}.")
    ]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in requirements}


def _with_kit(modules: set[str]) -> set[str]:
    """Returns modules, and those that modules of the kit among them import, in turn."""
    known: set[str] = set()
    while new := modules - known:
        known |= new
        files = [ROOT / f"{name.replace('.', '/')}.py" for name in new if name.startswith("clusters.kit")]
        modules = known.union(*(_imported(file) for file in files if file.is_file()))
    return known


def _imported(path: Path) -> set[str]:
    """Returns the modules that a file imports; of `from a import b`, both `a` and `a.b`, which may be one."""
    imported = set()
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return imported
