"""Artifacts of systems, for tests that make systems themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness.builds import Artifact, Provenance

if TYPE_CHECKING:
    from harness.system import System

    S = TypeVar("S", bound="System")


def built(system: S) -> S:
    """Returns the system with its real artifact: from the cache, or built now."""
    artifact = type(system).build(system.options, print)
    assert artifact is not None
    system.artifact = artifact
    return system


def unbuilt(system: S, name: str) -> S:
    """Returns the system with an artifact that exists nowhere, for descriptions of its processes."""
    about = Provenance(name=name, version="1.0", digest="0123456789abcdef")
    system.artifact = Artifact(path=Path("/nonexistent"), provenance=about)
    return system
