"""Which tests `make test` runs beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduling import ORDER, OTHERS, REAL, SPARK, UNTIMED, group_of

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/integration/test_remote.py::test_one[a/b]", REAL),
        ("tests/integration/nemesis/test_left_runs.py::test_one", REAL),
        ("tests/integration/linux/test_systems.py::test_one", "linux"),
        ("clusters/systems/my_store/tests/integration/test_my_store.py::test_one[a/b]", REAL),
        ("clusters/systems/my_store/tests/integration/jvm/test_mends.py::test_one", "jvm"),
        ("clusters/systems/my_store/tests/unit/test_my_store.py::test_one[tests/integration/linux]", OTHERS),
        ("tests/spark/test_job.py::test_one", SPARK),
        ("tests/unit/results/test_plots.py::test_one[integration/linux]", OTHERS),
        ("test_here.py::test_one", OTHERS),
    ],
)
def test_the_folder_says_the_group(nodeid: str, group: str) -> None:
    """A test belongs to a group by its file, whatever its parameters are."""
    assert group_of(nodeid) == group
    assert group in ORDER


@pytest.mark.parametrize("folder", UNTIMED)
def test_what_runs_beside_real_nodes_makes_none(folder: str) -> None:
    """Else two clusters at once would slow each other down, and what nodes do is timed."""
    files = [*ROOT.glob(f"tests/{REAL}/{folder}/*.py"), *ROOT.glob(f"clusters/systems/*/tests/{REAL}/{folder}/*.py")]
    assert files
    assert [file.name for file in files if "LocalCluster" in file.read_text(encoding="utf-8")] == []
