"""Runs every benchmark, or those that are named: `python -m benchmarks [NAME...] [--OPTION...]`.

Each is a folder with a `run.py` that prints a table and compares with a peer in the same run; nothing here is a test. The
numbers depend on the machine, so the tables give ratios. `fuzz` alone compares nothing: it gives the command damaged
files, for a minute unless `--minutes` says otherwise.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Runs benchmarks one after the other; returns the number of those that failed.

    Args:
        arguments: Names, and from the first that begins with a dash on, options for those that are named.
    """
    first = next((place for place, text in enumerate(arguments) if text.startswith("-")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    if options and not names:
        print(f"expected the name of a benchmark before {options[0]}", file=sys.stderr)
        return 1
    known = sorted(path.parent.name for path in HERE.glob("*/run.py"))
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 1
    failed = 0
    for name in names or known:
        print(f"\n## {name}\n", flush=True)
        failed += subprocess.run([sys.executable, str(HERE / name / "run.py"), *options], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
