"""The releases of etcd: Debian's package, or a build from etcd's Go module.

The folder `server` has a program that calls etcd's `main`, and for each release a `.mod` and a `.sum`: the versions and the
digests of all modules that the release needs. So each build of a release has the same sources. `go get` and `go mod tidy` made
these files. etcd's own `go install` does not work, because its module replaces others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from harness.builds import Build
from harness.packages import DebianPackages
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.builds import Artifact

Release = Literal["3.4", "3.7.3", "3.5.5", "3.5.4", "3.5.3", "3.5.2"]
DEBIAN: Final = "3.4"
PACKAGES: Final = DebianPackages(name="etcd", packages=["etcd-server"])
SOURCES: Final = Path(__file__).parent / "server"
PROGRAM: Final = "etcd"
FIRST_GO: Final = {release: 26 if release == "3.7.3" else 17 for release in get_args(Release) if release != DEBIAN}


def go(release: str) -> Program:
    """Returns Go as a program that the build of a release needs."""
    least = FIRST_GO[release]
    return Program(
        name="go",
        package="golang-go",
        purpose=f"building etcd {release} with Go 1.{least} or later; --etcd-version {DEBIAN} needs no build",
        least_version=least,
        version_pattern=r"go1\.(\d+)",
        version_arguments=("version",),
        build_only=True,
    )


def built(release: str, say: Callable[[str], object]) -> Artifact:
    """Returns the program of a release, from the cache or built now: about a minute, and 25 MB.

    Raises:
        InfrastructureError: Go is missing or too old, or the build failed.
    """
    command = (
        f"mv {release}.mod go.mod && mv {release}.sum go.sum && "
        f"CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o {PROGRAM} ."
    )
    return Build(
        name="etcd", version=release, sources=SOURCES, files=("main.go", f"{release}.mod", f"{release}.sum"),
        command=("sh", "-c", command), product=PROGRAM, tools=(go(release),),
    ).artifact(say)  # fmt: skip
