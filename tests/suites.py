"""The suites of the repository: those of Labrys, and those in the folders of the systems."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = ("suites/*.toml", "clusters/systems/*/suites/*.toml")  # that .github/workflows/nightly.yml runs
SUITES = {path.stem: path for place in PLACES for path in sorted(ROOT.glob(place))}
