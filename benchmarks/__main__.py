"""Runs every benchmark, or those that are named: `python -m benchmarks [NAME...]`.

Each is a folder with a `run.py` that prints a table and compares with a peer in the same run; nothing here is a test. The
numbers depend on the machine, so the tables give ratios.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Runs benchmarks one after the other; returns the number of those that failed."""
    known = sorted(path.parent.name for path in HERE.glob("*/run.py"))
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 1
    failed = 0
    for name in names or known:
        print(f"\n## {name}\n", flush=True)
        failed += subprocess.run([sys.executable, str(HERE / name / "run.py")], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
