"""Reads the runs of earlier nights from the output folder of an analysis, for their causes.

A night keeps its store for some weeks, and the trend folder for longer. Its table of runs has the signature of each run, so
that a cause is known to be old, gone, or back. A run that an earlier version read has none: if it is not valid, it is left out.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from harness.console.members import read
from harness.console.plain import one_line
from harness.errors import InputError
from harness.verdict import Verdict
from results.causes.cases import Trial, night_of
from results.causes.reading import ReadRun
from results.pipeline.read.local_files import LocalFiles, local
from results.pipeline.write.output import load_manifest
from results.pipeline.write.tables import reading
from results.record.signatures import Signature, WarningClasses
from results.store.store import Run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COLUMNS: Final = (
    "run", "started", "test", "system", "system_version", "seed", "reproduce", "said_verdict",
    "said_signature", "said_warnings", "software", "repeats", "suite", "line", "expects", "source",
)  # fmt: skip


def read_trend(folder: Path) -> tuple[list[ReadRun], dict[str, str]] | None:
    """Returns the runs of a trend folder, and for each run that is left out, the reason; None if it is no such folder.

    Raises:
        InputError: Its manifest is damaged, or of another version.
    """
    files = LocalFiles()
    root = files.qualified(str(folder))
    manifest = load_manifest(files, root)
    if manifest is None:
        return None
    runs: list[ReadRun] = []
    unread: dict[str, str] = {}
    for row in reading(root, manifest)("runs", COLUMNS).to_pylist():
        try:
            runs.append(_read(row))
        except (InputError, ValueError, TypeError) as error:
            unread[f"{folder}: {row['run']}"] = one_line(str(error))
    return runs, unread


def _read(row: Mapping[str, Any]) -> ReadRun:
    """Reads the row of a run.

    Raises:
        InputError: It has no signature, though it is not valid as expected; or its signature is malformed.
        ValueError: It has no start.
    """
    if row["started"] is None or row["system"] is None:
        raise ValueError("the run has no test.json, so its night is unknown")
    path = local(row["source"])
    if row["said_signature"] is None and row["said_verdict"] != (row["expects"] or Verdict.VALID):
        raise ValueError("an earlier version read the run, or it has no verdict; give its store to see its signature")
    signature = (
        None if row["said_signature"] is None else read(json.loads(row["said_signature"]), Signature, "signature")
    )
    warnings = (
        None if row["said_warnings"] is None else read(json.loads(row["said_warnings"]), WarningClasses, "warnings")
    )
    trial = Trial(
        run=Run(path) if path.is_dir() else None,
        name=str(path),
        night=night_of(datetime.fromisoformat(row["started"])),
        line=row["line"] or row["test"] or row["run"],
        system=row["system"],
        software=row["software"] or row["system"],
        release=row["system_version"] or "",
        seed=row["seed"] or "",
        reproduce=one_line(row["reproduce"] or ""),
        repeats=bool(row["repeats"]),
    )
    return ReadRun(trial=trial, nodes=(), repairs=None, signature=signature, warnings=warnings)
