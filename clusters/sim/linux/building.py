"""Builds the controller of Linux programs with the Rust of this machine, once; see `harness.builds`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.builds import Build
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES: Final = Path(__file__).parent / "controller"
BINARY: Final = "labrys-linux"
VERSION: Final = "0.3.0"  # of controller/Cargo.toml
CARGO: Final = Program(
    name="cargo", package="cargo", purpose="building the controller of Linux programs", build_only=True
)
CC: Final = Program(name="cc", package="gcc", purpose="building the controller of Linux programs", build_only=True)


def controller(say: Callable[[str], object]) -> Path:
    """Returns the path of the controller, which is built if it is not in the cache.

    Args:
        say: Is called with a sentence about what goes on.

    Raises:
        InfrastructureError: A tool is missing, or the build failed.
    """
    artifact = Build(
        name="linux-controller",
        version=VERSION,
        sources=SOURCES,
        files=("Cargo.toml", "Cargo.lock", "build.rs", "vdso/*", "src/**/*.rs"),
        command=("cargo", "build", "--release", "--locked", "--target-dir", "target"),
        product=f"target/release/{BINARY}",
        tools=(CARGO, CC),
    ).artifact(say)
    return artifact.path / BINARY
