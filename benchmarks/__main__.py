"""Runs every benchmark, or the named ones: `python -m benchmarks [NAME...] [--OPTION...]`.

Each is a folder with a `run.py` that prints a table and compares with a peer in the same run. None is a test. The numbers
depend on the machine, so the tables give ratios. Only `fuzz` compares nothing: it runs the command on damaged files and on
hostile programs, for a minute or `--minutes`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.console.process import end_with

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Runs benchmarks one after the other. Returns the number of failed ones.

    Args:
        arguments: Names, followed by options for the named ones, from the first word with a dash on.
    """
    first = next((index for index, text in enumerate(arguments) if text.startswith("-")), len(arguments))
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
        failed += _carry_out([sys.executable, str(HERE / name / "run.py"), *options]) != 0
    return failed


def _carry_out(command: list[str]) -> int:
    """Runs a command and returns its exit code. An interruption ends the command first, so that it can remove its cluster."""
    with subprocess.Popen(command) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            raise


if __name__ == "__main__":
    end_with(lambda: main(sys.argv[1:]))
