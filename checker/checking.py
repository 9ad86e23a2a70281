"""Decides the history in a file, with the model and the conventions that its format has unless others are asked for.

Formats come from tools that do not agree about some things, so each brings its own defaults (docs/formats.md says why): in
knossos' EDN a read of nil says nothing and a crashed dequeue takes nothing; in porcupine's etcd logs a failed compare-and-set
says that the value was another one. Our own formats say what they mean.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from checker.edn.reader import loads
from checker.formats.errors import BadHistory
from checker.formats.read import EDN, ETCD_LOG, read_histories
from checker.formats.source import STANDARD_INPUT
from checker.formats.values import PlainValues
from checker.independent import check_keys
from checker.models import MODELS, model
from harness.errors import InputError, LabrysError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.formats.read import History
    from checker.independent import KeyedAnalysis
    from checker.models import Model

DEFAULT_MODEL: Final = "cas-register"
RUN_HISTORY: Final = "history.jsonl"
RUN_TEST: Final = "test.json"

_OWN: Final = {"nil_read": "exact", "failed_cas": "drop", "crashed_dequeue": "takes"}
_CONVENTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    EDN: {"nil_read": "any", "failed_cas": "drop", "crashed_dequeue": "never"},
    ETCD_LOG: {"nil_read": "exact", "failed_cas": "observe", "crashed_dequeue": "takes"},
}
WORKLOAD_MODELS: Final = {"register": "cas-register"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of each history.

    Attributes:
        model: The model's name; None: the run's own, or a compare-and-set register.
        initial: The initial state in EDN; None: the model's own.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`, where they are not the format's own.
        keyed: Whether values are pairs of a key and a value; None: as the history shows it.
        algorithm: As `checker.analysis` takes it.
        time_limit_s: Seconds for each history; None for no limit.
        memory_limit: Bytes for each history; None for half of what is available.
        cross_check: Whether a second algorithm has to agree.
        certificate: Whether to give the linearization of valid histories.
    """

    model: str | None
    initial: str | None
    conventions: Mapping[str, str]
    keyed: bool | None
    algorithm: str
    time_limit_s: float | None
    memory_limit: int | None
    cross_check: bool
    certificate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A history that was decided.

    Attributes:
        history: What was read.
        conventions: How it was taken.
        analysis: What is known about it.
        read_s: Seconds that reading took.
    """

    history: History
    conventions: Mapping[str, str]
    analysis: KeyedAnalysis
    read_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A file that could not be decided.

    Attributes:
        name: As the user gave it.
        error: Why.
    """

    name: str
    error: LabrysError


def check_file(name: str, request: Request) -> Iterator[Checked]:
    """Decides the history in a file, in a run's folder or on standard input; or each run's in a file that holds several.

    Raises:
        LabrysError: It cannot be read, does not fit the model, or the checker failed.
    """
    began_s = time.perf_counter()
    path, chosen = name, request.model
    if name != STANDARD_INPUT and Path(name).is_dir():
        path = str(Path(name) / RUN_HISTORY)
        if not Path(path).is_file():
            raise BadHistory(name, None, f"expected a file, or a run's folder with {RUN_HISTORY} in it")
        chosen = chosen or _model_of_run(Path(name) / RUN_TEST)
    for history in read_histories(path, keyed=request.keyed):
        read_s = time.perf_counter() - began_s
        conventions = {**conventions_of(history.format), **request.conventions}
        analysis = check_keys(
            make_model(chosen or DEFAULT_MODEL, request.initial, conventions),
            history.operations,
            algorithm=request.algorithm,
            time_limit=request.time_limit_s,
            memory_limit=request.memory_limit,
            certificate=request.certificate,
            cross_check=request.cross_check,
        )
        yield Checked(history=history, conventions=conventions, analysis=analysis, read_s=read_s)
        began_s = time.perf_counter()


def conventions_of(found: str) -> Mapping[str, str]:
    """Returns how histories of a format are taken where the user says nothing."""
    return _CONVENTIONS.get(found, _OWN)


def make_model(name: str, initial: str | None, conventions: Mapping[str, str]) -> Model:
    """Returns a model with its conventions.

    Args:
        name: One of `MODELS`.
        initial: The initial state in EDN; None: the model's own.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`.

    Raises:
        InputError: The initial state is no EDN, or none of this model's.
    """
    options: dict[str, Any] = dict(conventions)
    if initial is not None:
        try:
            options["initial"] = PlainValues().value(loads(initial, name="--initial"))
        except ValueError as error:
            raise InputError(f"--initial: {error}") from error
    return model(name, **options)


def _model_of_run(path: Path) -> str:
    """Returns the model that a run's workload works on."""
    try:
        workload = json.loads(path.read_bytes())["workload"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}: expected the workload's name, to know the model: {error}; say it with --model"
        ) from error
    found = WORKLOAD_MODELS.get(str(workload), str(workload))
    if found not in MODELS:
        raise InputError(
            f"{path}: no model is known for the workload {workload!r}; say it with --model. {did_you_mean(found, MODELS)}"
        )
    return found
