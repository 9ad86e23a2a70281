"""Runs a suite: each case in a process of its own, with the results written after each case.

A case that crashes, hangs or is killed affects no other case. After an interruption, the suite continues from its folder,
`store/suites/NAME/TIME/`, which has `suite.json`, `junit.xml`, `summary.md`, and a log for each case.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from commands.following import Following
from commands.suite_markdown import suite_markdown
from commands.suite_summary import COLOURS
from harness import below
from harness.errors import ExitCode, InputError, Terminated
from harness.parameters import MAX_RUN_S
from harness.plain import one_line, plain
from harness.suite import CaseResult
from harness.thresholds import crossed
from harness.verdict import Verdict
from results import members as must
from results.errors import BadRecord, StoreError
from results.formatting import seconds
from results.junit import junit_xml, of_cases
from results.measures import measure
from results.reading import behind, failures, fault_violations, parts_from
from results.record import suite_case_document
from results.store import CURRENT, SUITES, fresh_folder, point, unpoint, write_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from rich.console import Console

    from harness.op import Value
    from harness.suite import Case, Suite

FORMAT = "labrys-suite"
VERSION = 1
EXTRA_S = 900.0  # allowed per run beside its workload on usual nodes: set-up, recovery, final reads, checking
REASON_LINES = 3
ERROR_PREFIX = "labrys: "  # of each error that a command writes
MAX_PLAIN_NAME = 120
DIGEST_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class SuiteFolder:
    """The folder with the results of a suite.

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def create(cls, store: Path, suite: Suite, utc: datetime) -> SuiteFolder:
        """Makes the folder of a new run of a suite."""
        parent = store / SUITES / _plain_name(suite.name)
        try:
            return cls(fresh_folder(parent, utc))
        except OSError as error:
            raise StoreError(f"a folder in {parent} could not be made: {error.strerror or error}") from error

    def read(self) -> Value:
        """Returns the content of `suite.json`."""
        with below.open_file(self.path, self.path / "suite.json") as file:
            return json.loads(file.read())

    def finished(self, suite: Suite) -> dict[str, CaseResult]:
        """Returns the results of the cases that finished before, by name.

        Raises:
            InputError: The folder belongs to another suite or seed, or cannot be read.
        """
        path = self.path / "suite.json"
        try:
            document = self.read()
            if document["format"] != FORMAT or document["suite"] != suite.name or document["seed"] != str(suite.seed):
                raise InputError(
                    f"{path} belongs to another suite or seed: {document['suite']}, seed {document['seed']}"
                )
            cases = {case.name: case for case in suite.cases}
            return {
                name: _result_from(cases[name], must.mapping(result, f"results.{name}"))
                for name, result in must.mapping(document["results"], "results").items()
                if name in cases
            }
        except (BadRecord, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{path} cannot be resumed: {type(error).__name__}: {error}") from error

    @contextlib.contextmanager
    def current(self, store: Path) -> Iterator[None]:
        """Points `suites/current` of the store at this folder inside the context, for `labrys serve`."""
        link = store / SUITES / CURRENT
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            point(link, self.path)
        except OSError as error:
            raise StoreError(f"{link} could not be made: {error.strerror or error}") from error
        try:
            yield
        finally:
            unpoint(link, self.path)

    def save(self, suite: Suite, results: Mapping[str, CaseResult], *, running: str | None = None) -> None:
        """Writes the results: `suite.json` for `--resume`, `junit.xml` and `summary.md` for CI."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "suite": suite.name,
            "seed": str(suite.seed),
            "cases": [case.name for case in suite.cases],
            "running": running,
            "results": {name: _result_json(result) for name, result in results.items()},
        }
        write_text(self.path, self.path / "suite.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        write_text(self.path, self.path / "junit.xml", junit_xml([of_cases(suite.name, list(results.values()))]))
        summary = suite_markdown(suite.name, suite.seed, list(results.values()), cases=len(suite.cases))
        write_text(self.path, self.path / "summary.md", summary)


def seed_of(folder: Path) -> int:
    """Returns the seed of the suite in a folder."""
    try:
        return must.whole(int(SuiteFolder(folder).read()["seed"]), "seed")
    except (BadRecord, OSError, ValueError, OverflowError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder} has no suite to resume: {error}") from error


def run_suite(
    suite: Suite,
    folder: SuiteFolder,
    *,
    store: Path,
    console: Console,
    exit_first: bool,
    before: Mapping[str, CaseResult],
    time_limit_s: float,
    config: Path | None,
    chosen: Collection[str] | None = None,
) -> list[CaseResult]:
    """Runs the cases that have no result yet.

    Args:
        suite: The suite.
        folder: The folder for its results.
        store: The store for the runs.
        console: The console for a line for each case.
        exit_first: Whether to stop at the first case that fails.
        before: The results of an interrupted suite, by case.
        time_limit_s: The duration of the workload of a case without a time limit.
        config: The `labrys.toml` of the cases; None if they have none.
        chosen: The names of the cases to run; None for all.

    Returns:
        The results of the cases that ran, in the order of the suite.

    Raises:
        KeyboardInterrupt: A person ended the suite; the folder has the results so far.
    """
    results = dict(before)
    names = file_names(suite)
    todo = [case for case in suite.cases if case.name not in results and (chosen is None or case.name in chosen)]
    with folder.current(store):
        for number, case in enumerate(todo, 1):
            console.print(Text(f"[{number}/{len(todo)}] {plain(case.name)}", style="bold"))
            folder.save(suite, results, running=case.name)
            own = ["--store", str(store), "--format", "json", "--name", _plain_name(f"{suite.name}-{names[case.name]}")]
            own += ["--suite-case", json.dumps(suite_case_document(suite.case_of(case)))]
            command = [*(["--config", str(config)] if config else []), *case.arguments(), *own]
            log = folder.path / f"{names[case.name]}.log"
            with Following(console, log):
                result = _run_case(case, command, log, limit_s(case, time_limit_s))
            if result.exit_code == ExitCode.INTERRUPTED:
                raise KeyboardInterrupt
            results[case.name] = result
            folder.save(suite, results)
            console.print(
                Text(
                    f"      {result.ended} ({seconds(result.seconds)}): {one_line(result.why)}",
                    style=COLOURS[result.passed],
                )
            )
            if exit_first and not result.passed:
                break
    return [results[case.name] for case in suite.cases if case.name in results]


def file_names(suite: Suite) -> dict[str, str]:
    """Returns a legible and unique file name for each case, by the case's name.

    So the store, `labrys serve` and the trends distinguish the runs of two cases.
    """
    plain = {case.name: _plain_name(case.name) for case in suite.cases}
    times = Counter(plain.values())
    return {case: name if times[name] == 1 else _with_digest(name, case) for case, name in plain.items()}


def _plain_name(text: str) -> str:
    """Returns a text as a file name; a long one is cut, and gets a digest so that it stays unique."""
    plain = re.sub(r"[^A-Za-z0-9.+-]+", "_", text).strip("_")
    plain = plain if plain[:1].isalnum() else f"s{plain}"
    return plain if len(plain) <= MAX_PLAIN_NAME else _with_digest(plain, text)


def _with_digest(plain: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    return f"{plain[: MAX_PLAIN_NAME - DIGEST_CHARACTERS - 1]}-{digest}"


def _run_case(case: Case, command: Sequence[str], log_path: Path, limit_s: float) -> CaseResult:
    began_s = time.monotonic()
    try:
        opened = below.open_new_text(log_path.parent, log_path)
    except OSError as error:
        raise StoreError(f"{log_path} could not be written: {error.strerror}") from error
    with opened as log:
        process = subprocess.Popen(
            # -P: a checkout in the working folder does not replace the installed modules.
            [sys.executable, "-P", "-m", "cli", *command],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.terminate()  # the run heals its nodes and takes its cluster down
            output, _ = process.communicate()
        except KeyboardInterrupt as interruption:
            if isinstance(interruption, Terminated):
                process.terminate()  # Ctrl-C reaches it by itself
            process.communicate()
            raise
        log.seek(0)
        lines = [line.strip() for line in log if line.strip()]
    errors = [number for number, line in enumerate(lines) if line.startswith(ERROR_PREFIX)]
    shown = lines[errors[-1] :][:REASON_LINES] if errors else lines[-REASON_LINES:]
    document = _document(output)
    if case.runs > 1 and "runs" in document:
        return how_often(case, document, seconds=time.monotonic() - began_s)
    parts = parts_from(document) if "parts" in document else []
    return CaseResult(
        case=case,
        exit_code=_code(process.returncode, document),
        reason=str(document.get("reason") or " / ".join(shown) or "the command printed nothing"),
        seconds=time.monotonic() - began_s,
        run=document.get("run"),
        failures=failures(parts),
        left_out=tuple(str(left["kind"]) for left in document.get("left_out", ())),
        fault_violations=fault_violations(document),
        crossed=crossed(case.thresholds, partial(measure, document)) if "valid" in document else (),
        behind=behind(parts),
    )


def how_often(case: Case, document: Mapping[str, Value], *, seconds: float) -> CaseResult:
    """Returns the result of a case with several runs: as expected if at least `at_least` runs are.

    Otherwise the worst of the other runs decides, in the order invalid, error, unknown, valid.

    Args:
        case: The case.
        document: The JSON output of `labrys test --repeat`.
        seconds: The duration of all runs.
    """
    runs = document["runs"]
    hits = [
        run
        for run in runs
        if Verdict.from_json(run["valid"]) is case.expect and case.expect_parts.issubset(run["invalid"])
    ]
    others = [run for run in runs if run not in hits]
    enough = len(hits) >= case.at_least
    shown: Mapping[str, Value] = next(iter(hits if enough else _worst_first(others)), {})
    text = f"{len(hits)} of {len(runs)} runs are {case.expect}"
    text += f" by {', '.join(sorted(case.expect_parts))}" if case.expect_parts else ""
    verdict = Verdict.from_json(shown.get("valid"))
    code = ExitCode.INTERNAL if verdict is None else verdict.exit_code
    return CaseResult(
        case=case,
        exit_code=int(code),
        reason=f"{text}, and at least {case.at_least} of {case.runs} should be. {shown.get('reason') or 'None ran.'}",
        seconds=seconds,
        run=shown.get("run"),
        failures=tuple(f"{part}={Verdict.INVALID}" for part in shown.get("invalid", ())),
    )


def _worst_first(runs: Sequence[Mapping[str, Value]]) -> list[Mapping[str, Value]]:
    """Returns runs in the order invalid, error, unknown, valid."""
    order = {Verdict.INVALID: 0, None: 1, Verdict.UNKNOWN: 2, Verdict.VALID: 3}
    return sorted(runs, key=lambda run: order[Verdict.from_json(run["valid"])])


def _code(returncode: int, document: Mapping[str, Value]) -> int:
    """Returns the exit code of a case; that of an error if its process ends with the code of a verdict that it did not print.

    A Python that cannot start also ends with 1, and a negative control must not pass by that.
    """
    verdict = Verdict.from_json(document.get("valid"))
    printed = None if verdict is None else int(verdict.exit_code)
    is_verdict = returncode in {int(each.exit_code) for each in Verdict}
    return int(ExitCode.INTERNAL) if is_verdict and returncode != printed else returncode


def limit_s(case: Case, time_limit_s: float) -> float:
    """Returns the time limit of a case: its workloads, and time for all else; more on slow nodes."""
    slowness = case.options.get("slowness", 1)
    factor = slowness if isinstance(slowness, int | float) and slowness > 1 else 1
    return workload_s(case, time_limit_s) + case.runs * EXTRA_S * factor


def workload_s(case: Case, default_s: float) -> float:
    """Returns the sum of the durations of a case's workloads, from its time limit, its plan, or the default.

    A value that is not valid counts as missing here. The case's own command refuses it later, with the reason.
    """
    given: Value = case.options.get("time-limit")
    plan = case.options.get("plan")
    if given is None and plan is not None:
        try:
            document = json.loads(Path(str(plan)).read_text(encoding="utf-8"))
            given = document.get("plan", document)["time_limit_s"]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            given = None
    try:
        seconds_given = float(given)
    except (TypeError, ValueError, OverflowError):
        return case.runs * default_s
    return case.runs * (seconds_given if 0 <= seconds_given <= MAX_RUN_S else default_s)


def _document(output: str) -> Mapping[str, Value]:
    try:
        document = json.loads(output)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _result_from(case: Case, result: Mapping[str, Value]) -> CaseResult:
    violations = result.get("fault_violations")
    return CaseResult(
        case=case,
        exit_code=must.whole(must.member(result, "exit_code"), "exit_code", minimum=-255),
        reason=must.text(must.member(result, "reason"), "reason"),
        seconds=must.seconds(must.member(result, "seconds"), "seconds"),
        run=must.text_or_none(result.get("run"), "run"),
        failures=must.texts(result.get("failures", []), "failures"),
        left_out=must.texts(result.get("left_out", []), "left_out"),
        fault_violations=None if violations is None else must.whole(violations, "fault_violations"),
        crossed=must.texts(result.get("crossed", []), "crossed"),
        behind=must.text_or_none(result.get("behind"), "behind"),
    )


def _result_json(result: CaseResult) -> dict[str, Value]:
    return {
        "exit_code": result.exit_code,
        "reason": result.reason,
        "seconds": result.seconds,
        "run": result.run,
        "failures": list(result.failures),
        "left_out": list(result.left_out),
        "fault_violations": result.fault_violations,
        "crossed": list(result.crossed),
        "behind": result.behind,
        "passed": result.passed,
        "ended": result.ended,
        "why": result.why,
        "reproduce": result.reproduce,
    }
