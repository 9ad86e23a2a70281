"""The package of docs/guide/new-fault.md, as far as `importlib.metadata` can tell that it is installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.console import plugins
from nemesis import kinds

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "new-fault.md"


def install_slow_faults(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes the page's code and its entry point into a folder that Python looks into."""
    blocks = dict(re.findall(r"```(python|toml)\n(.*?)```", PAGE.read_text(), re.DOTALL))
    group, point = re.findall(r'entry-points\."(.*?)"\]\n(.*)', blocks["toml"])[0]
    information = folder / "slow_faults-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-faults\nVersion: 0.1.0\n")
    (information / "entry_points.txt").write_text(f"[{group}]\n{point.replace(chr(34), '')}\n")
    (folder / "slow_faults.py").write_text(blocks["python"])
    monkeypatch.syspath_prepend(str(folder))
    forget_plugins()


def forget_plugins() -> None:
    """Lets plug-ins be looked for anew."""
    plugins.plugins.cache_clear()
    kinds.registry.cache_clear()
    sys.modules.pop("slow_faults", None)
