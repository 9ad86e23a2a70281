"""Builds DLedger's node before Labrys is installed: `python -m tools.dledger_node [FOLDER]`.

It does the same as `labrys build --system dledger`. `labrys` finds a system by the entry points of the installed package, and
`make demo` builds the node while the kernel of the checker compiles, so nothing is installed yet. With a folder, it copies the
artifact there, and a wheel carries it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.system import DLedgerSystem
from harness.builds import put_on_shelf
from harness.console import process
from harness.errors import ExitCode


def main() -> int:
    """Builds it; returns the exit code."""
    artifact = DLedgerSystem.build(DLedgerOptions(), print)
    for folder in sys.argv[1:]:
        put_on_shelf(artifact, Path(folder))
    return ExitCode.VALID


if __name__ == "__main__":
    process.end_with(main)
