"""Checks the history of a file, with the default model and conventions of its format unless others are given.

Formats come from tools with different conventions, so each has its own defaults (see docs/reference/formats.md). In knossos'
EDN, a read of nil has no meaning and a crashed dequeue takes nothing. In the console logs of porcupine's tests, a failed
compare-and-set proves that the value was different. Labrys' own formats have no such ambiguity. An EDN history can name its
conventions, as those of Labrys do. Flags of the user override them.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from checker.decide.decision import decide
from checker.decide.history import OfObjects
from checker.decide.question import Explaining, Question
from checker.deciders import MODEL_HINT, Decider, Wanted
from checker.errors import CheckFailed, Disagreement, ModelError
from checker.explain.weakening import weakened
from checker.formats.conventions import OWN
from checker.formats.errors import BadHistory
from checker.formats.log_lines import CONSOLE_LOG, HISTORY_TXT, JEPSEN_LOG
from checker.formats.parquet import rows_of
from checker.formats.read import History, from_parquet, read_source
from checker.formats.readers import EDN, JEPSEN_FILE, PARQUET, detect, on_disk
from checker.formats.source import STANDARD_INPUT, opened
from checker.formats.values import initial_value
from checker.models import find_model, made
from checker.models.blaming import blaming
from checker.models.registers import MultiRegister
from checker.search.solving import Limits
from harness.console import below
from harness.console.documents import parse_json
from harness.errors import InputError, LabrysError
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker.decide.history import Decidable
    from checker.formats.plain import Plain
    from checker.formats.source import Source
    from checker.judging.judged import Judged
    from checker.keyed import KeyedAnalysis
    from checker.models import Model

RUN_HISTORY: Final = "history.jsonl"
RUN_TEST: Final = "test.json"
MAX_TEST_BYTES: Final = 16 << 20
LONG_ROWS: Final = 20_000  # for fewer rows, objects are as fast as arrays, and show more
EXPLAIN_S: Final = 10.0  # for the counterexamples of one history
_AUTO: Final = "auto"

_OF_KNOSSOS: Final = {"nil_read": "any", "failed_cas": "drop", "crashed_dequeue": "never"}
_CONVENTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    EDN: _OF_KNOSSOS,
    JEPSEN_LOG: _OF_KNOSSOS,
    HISTORY_TXT: _OF_KNOSSOS,
    JEPSEN_FILE: _OF_KNOSSOS,
    CONSOLE_LOG: {"nil_read": "exact", "failed_cas": "observe", "crashed_dequeue": "takes"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a check.

    Attributes:
        wanted: The model or the workload, if the user set one.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`, if they differ from those of the file or its format.
        keyed: Whether values are pairs of a key and a value; None: detected.
        algorithm: One of `checker.search.solving.ALGORITHMS`.
        time_limit_s: Seconds for each history; None for no limit.
        memory_limit: Bytes for each history; None for half of the available memory.
        cross_check: Whether a second algorithm must agree.
        certificate: Whether to return the linearization of valid histories.
        unpack_limit: The maximum size of an uncompressed history; None: the default of `checker.formats.source.Source`.
        empty: The verdict on a history without operations: unknown, or valid as in knossos.
        explain_model: Whether to return statistics of the search.
    """

    wanted: Wanted
    conventions: Mapping[str, str] = field(default_factory=dict)
    keyed: bool | None = None
    algorithm: str = "auto"
    time_limit_s: float | None = None
    memory_limit: int | None = None
    cross_check: bool = False
    certificate: bool = False
    unpack_limit: int | None = None
    empty: Verdict = Verdict.UNKNOWN
    explain_model: bool = False

    def question(self, model: Model, *, explain_s: float | None = EXPLAIN_S) -> Question:
        """Returns the question about a history.

        Args:
            model: The model of each object.
            explain_s: Seconds for the explanations of invalid keys; None for no limit.
        """
        return Question(
            model=model,
            limits=Limits(algorithm=self.algorithm, time_limit_s=self.time_limit_s, memory_limit=self.memory_limit),
            certificate=self.certificate,
            cross_check=self.cross_check,
            explain_model=self.explain_model,
            empty=self.empty,
            explaining=Explaining(limit_s=explain_s),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result for a history.

    Attributes:
        history: The history.
        conventions: The conventions of the check.
        analysis: The result of the check.
        weakened: By convention, the number of operations whose meaning it weakened.
        read_s: The duration of reading, in seconds.
    """

    history: History
    conventions: Mapping[str, str]
    analysis: KeyedAnalysis
    weakened: Mapping[str, int]
    read_s: float

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole history."""
        return self.analysis.valid

    @property
    def operations(self) -> int:
        """The number of operations."""
        return self.analysis.operations

    @property
    def seconds(self) -> float:
        """Wall time of the check."""
        return self.analysis.seconds

    @property
    def analyzers(self) -> Sequence[str]:
        """The analyzers that decided, sorted."""
        return sorted({of_key.analyzer for of_key in self.analysis.keys.values()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A file that could not be checked.

    Attributes:
        name: The name that the user gave.
        error: The reason.
    """

    name: str
    error: LabrysError


def check_file(name: str, request: Request) -> Iterator[Checked | Judged | Refused]:
    """Decides the history in a file, in a run's folder or on standard input; or each run's history in a file of several runs.

    An error in the history of one run of several is the result of that run, and the others are decided.

    Raises:
        LabrysError: The file is unreadable or does not fit the model, or the checker failed.
    """
    began_s = time.perf_counter()
    path = name
    run: Path | None = None
    if name != STANDARD_INPUT and os.path.isdir(name):  # noqa: PTH112 - it returns False for inaccessible paths
        run = Path(name)
        path = _history_of_run(run)
    decider = request.wanted.of_history() if run is None else _decider_of_run(run, request.wanted)
    if decider.judge is not None:
        _refuse_model_options(decider, request)
    with opened(path, request.unpack_limit, within=run) as source:
        transactions = getattr(decider.judge, "transactions", None)
        if detect(source, transactions=transactions) == PARQUET:
            yield from _check_parquet(source, decider, request)
            return
        histories = read_source(source, keyed=request.keyed, transactions=transactions)
    yield from _check_each(histories, decider, request, began_s)


def refusal(error: BaseException) -> LabrysError:
    """Returns the error of a file as one that can be shown.

    Raises:
        BaseException: The error itself, if the command has to end, such as after Ctrl-C.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    # After any other error, such as too little memory or a panic of the kernel, the other files are checked.
    return error if isinstance(error, LabrysError) else CheckFailed(error).with_traceback(error.__traceback__)


def _check_each(
    histories: list[History], decider: Decider, request: Request, began_s: float
) -> Iterator[Checked | Judged | Refused]:
    for history in histories:
        checked: Checked | Judged | Refused
        try:
            checked = _check_one(history, decider, request, began_s)
        except BaseException as error:
            if len(histories) == 1:
                raise
            checked = Refused(name=history.name, error=refusal(error))
        yield checked
        began_s = time.perf_counter()


def _check_one(history: History, decider: Decider, request: Request, began_s: float) -> Checked | Judged:
    read_s = time.perf_counter() - began_s
    if decider.judge is not None:
        from checker.judging.by_judge import judge_history  # noqa: PLC0415 - loads pyarrow, which models do not need

        return judge_history(history, decider.judge, empty=request.empty, read_s=read_s)
    conventions = {**conventions_of(history.format), **history.conventions, **request.conventions}
    chosen = make_model(_class_of(decider), request.wanted.initial, conventions)
    try:
        with blaming(type(chosen)):
            analysis = decide(_history_of(history), request.question(chosen))
    except ModelError as error:  # names an event; only here its history is known
        raise ModelError(f"{history.name}: {error}") from error
    except Disagreement as error:
        error.conventions = conventions
        raise
    weak = weakened(chosen, history.operations) if history.plain is None else _weakened_rows(chosen, history.plain)
    return Checked(history=history, conventions=conventions, analysis=analysis, weakened=weak, read_s=read_s)


def _check_parquet(source: Source, decider: Decider, request: Request) -> Iterator[Checked | Judged | Refused]:
    """Decides the history of each run in a Parquet file; a long one from arrays, if arrays can represent it."""
    began_s = time.perf_counter()
    with on_disk(source) as path:
        if decider.judge is not None:
            from checker.judging.by_judge import judge_table  # noqa: PLC0415 - loads pyarrow, which models do not need

            judged = judge_table(path, source.name, decider.judge, empty=request.empty)
            if judged is not None:
                yield judged
                return
            yield from _check_each(from_parquet(path, source.name), decider, request, began_s)
            return
        if rows_of(path, source.name) >= LONG_ROWS:
            checked = _check_long(path, source.name, _class_of(decider), request, began_s)
            if checked is not None:
                yield checked
                return
        yield from _check_each(from_parquet(path, source.name), decider, request, began_s)


def _history_of(history: History) -> Decidable:
    """Returns a history that was read, for its decision."""
    if history.plain is None:
        return OfObjects.of(history.operations)
    from checker.decide.arrays import OfPlain  # noqa: PLC0415 - loads numpy and pyarrow

    return OfPlain(history.plain)


def _weakened_rows(model: Model, plain: Plain) -> Mapping[str, int]:
    """Returns what `weakened` does, from arrays if they suffice."""
    from checker.decide.tables import WeakRows  # noqa: PLC0415 - only for long histories

    if isinstance(model, MultiRegister):
        return weakened(model, plain.operations)
    rows = WeakRows(model)
    rows.add(plain.columns)
    return rows.counts()


def _class_of(decider: Decider) -> type[Model]:
    assert decider.model is not None  # noqa: S101 - a decider has a judge or a model
    return decider.model


def _check_long(path: Path, file: str, cls: type[Model], request: Request, began_s: float) -> Checked | None:
    """Decides the only history in a Parquet file from arrays; None if arrays cannot represent it."""
    from checker.decide.tables import read_table  # noqa: PLC0415 - only for long histories

    conventions = {**conventions_of(PARQUET), **request.conventions}
    chosen = make_model(cls, request.wanted.initial, conventions)
    table = None if request.question(chosen).needs_objects else read_table(path, file, chosen)
    if table is None:
        return None
    read_s = time.perf_counter() - began_s
    analysis = decide(table, request.question(chosen, explain_s=None))  # each explanation reads the file again
    history = History(
        name=file,
        format=PARQUET,
        operations=(),
        events=table.events,
        timed=True,
        keyed=any(key is not None for key in table.keys),
        warnings=(),
    )
    return Checked(history=history, conventions=conventions, analysis=analysis, weakened=table.weakened, read_s=read_s)


def conventions_of(format_name: str) -> Mapping[str, str]:
    """Returns the default conventions of a format."""
    return _CONVENTIONS.get(format_name, OWN)


def make_model(chosen: type[Model] | str, initial: str | None, conventions: Mapping[str, str]) -> Model:
    """Returns a model with its conventions.

    Args:
        chosen: The model's class, or the name of an installed one.
        initial: The initial state in EDN; None: the model's own.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`.

    Raises:
        InputError: The initial state is not EDN, or does not fit the model.
    """
    options: dict[str, Any] = dict(conventions)
    if initial is not None:
        options["initial"] = initial_value(initial)
    return made(find_model(chosen) if isinstance(chosen, str) else chosen, **options)


def _history_of_run(run: Path) -> str:
    """Returns the path of the history in a run's folder."""
    path = run / RUN_HISTORY
    try:
        path.lstat()
    except FileNotFoundError:
        raise BadHistory(str(run), None, f"expected a file, or a run's folder with {RUN_HISTORY} in it") from None
    except OSError as error:
        raise BadHistory(str(run), None, f"its {RUN_HISTORY} is not accessible: {error.strerror}") from error
    return str(path)


def _decider_of_run(run: Path, wanted: Wanted) -> Decider:
    """Returns the model or the judge of a run's history."""
    if wanted.model is not None:
        return wanted.of_history()
    path = run / RUN_TEST
    try:
        with below.open_file(run, path) as file:
            test = parse_json(file.read(MAX_TEST_BYTES), str(path))
        workload, options = test["workload"], test.get("options")
    except (InputError, OSError, LookupError, TypeError, AttributeError) as error:
        if wanted.workload is not None:
            return wanted.of_history()
        raise InputError(
            f"{path}: expected the workload's name, to choose the checker: {error}; {MODEL_HINT}"
        ) from error
    return wanted.of_run(workload, options, str(path))


def _refuse_model_options(decider: Decider, request: Request) -> None:
    """Refuses options that only models have, because they would change nothing.

    Raises:
        InputError: There is such an option.
    """
    asked = {
        "--initial": request.wanted.initial is not None and not decider.takes_initial,
        **{f"--{name.replace('_', '-')}": True for name in request.conventions},
        "--algorithm": request.algorithm != _AUTO,
        "--time-limit": request.time_limit_s is not None,
        "--memory-limit": request.memory_limit is not None,
        "--cross-check": request.cross_check,
        "--certificate": request.certificate,
        "--explain-model": request.explain_model,
    }
    given = [name for name, is_asked in asked.items() if is_asked]
    if given:
        raise InputError(
            f"{', '.join(given)}: only models support this, and the workload {decider.name} has its own checker; "
            "leave it out, or name a model with --model"
        )
