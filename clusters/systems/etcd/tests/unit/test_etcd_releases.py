"""Tests of the releases of etcd that are built from its Go module."""

from __future__ import annotations

from typing import get_args

import pytest

from clusters.systems.etcd.releases import DEBIAN, SOURCES, Release, go

BUILT = [release for release in get_args(Release) if release != DEBIAN]


@pytest.mark.parametrize("release", BUILT)
def test_a_release_pins_the_versions_and_the_digests_of_its_modules(release: str) -> None:
    """The module files of a release name that release of etcd, and a digest of it."""
    module = f"go.etcd.io/etcd/server/v3 v{release}"
    assert f"require {module}\n" in (SOURCES / f"{release}.mod").read_text()
    assert f"{module} h1:" in (SOURCES / f"{release}.sum").read_text()


@pytest.mark.parametrize("release", BUILT)
def test_a_release_names_the_go_that_its_module_file_asks_for(release: str) -> None:
    """A build refuses a Go that is older than the line `go` of the module file says."""
    asked = next(line for line in (SOURCES / f"{release}.mod").read_text().splitlines() if line.startswith("go "))
    assert asked.removeprefix("go 1.").split(".")[0] == str(go(release).least_version)


def test_each_pair_of_module_files_is_an_option() -> None:
    """No module file is left over, and none is missing."""
    assert {path.stem for path in SOURCES.glob("*.mod")} == set(BUILT)
    assert {path.stem for path in SOURCES.glob("*.sum")} == set(BUILT)
