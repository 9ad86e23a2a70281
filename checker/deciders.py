"""Chooses the checker of a history: a model, or the judge of a workload. A workload is found only by its name.

A run is checked by its own workload, with its recorded options. The name from a file is looked up among the installed
workloads, and its options must have the right types. Only the user can name a module.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from checker.errors import ModelError
from checker.models import DEFAULT, Model, find_model
from harness.console.documents import shown
from harness.console.plain import name as plain_name
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.judging import Judge
    from harness.op import Value

DEFAULT_MODEL: Final = DEFAULT
OPTION_FLAG: Final = "--workload-option"
INITIAL: Final = "initial"  # the option of a workload that takes an initial state
MODEL_HINT: Final = "set it with --model or --workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """The checker of a history.

    Attributes:
        name: The model's name, or the workload's.
        model: The model's class; None: the workload decides.
        judge: The workload that decides; None: the model does.
        options: The judge's options that differ from its defaults, as text.
        takes_initial: Whether it takes an initial state, as each model does.
    """

    name: str
    model: type[Model] | None = None
    judge: Judge | None = None
    options: str = ""
    takes_initial: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The user's choice of a model or a workload; it overrides what a run records.

    Attributes:
        model: The model's name, or its `module:Class`; None for no choice.
        workload: The workload's name, or its `module:Name`; None for no choice.
        settings: Options of the workload that its verdict depends on, as `NAME=VALUE`.
        initial: The initial state in EDN; None: the object's own. Models take it, and workloads that have such an option.
        by_place: Whether the user may name the model or the workload by `module:Name`; a file may not.
    """

    model: str | None = None
    workload: str | None = None
    settings: Sequence[str] = ()
    initial: str | None = None
    by_place: bool = True

    def __post_init__(self) -> None:
        if self.model is not None and self.workload is not None:
            raise InputError("--model and --workload exclude each other; give one of them")
        if self.model is not None and self.settings:
            raise InputError(f"{OPTION_FLAG} needs a workload, and --model excludes it; give one of them")

    def of_history(self) -> Decider:
        """Returns the checker of a history without a run.

        Raises:
            InputError: The model or the workload is missing, or the workload does not take the settings.
        """
        if self.workload is not None:
            return of_workload(self.workload, settings=self.settings, initial=self.initial, by_place=self.by_place)
        if self.settings:
            raise InputError(f"{OPTION_FLAG} needs a workload that has the option; name it with --workload")
        return _of_model(self.model or DEFAULT_MODEL, by_place=self.by_place)

    def of_run(self, workload: Value, options: Value, source: str) -> Decider:
        """Returns the checker of a run's history.

        Args:
            workload: The workload's recorded name.
            options: The run's recorded options.
            source: The file that records them, for errors.

        Raises:
            InputError: The workload is missing, or does not take the options; the message names the source.
        """
        if self.model is not None:
            return self.of_history()
        if self.workload is not None and self.workload != workload:
            return self.of_history()
        if not isinstance(workload, str):
            raise InputError(f"{source}: expected the workload's name, found {shown(workload)}; {MODEL_HINT}")
        known = options if isinstance(options, dict) else {}
        try:
            return of_workload(workload, options=known, source=source, settings=self.settings, initial=self.initial)
        except InputError as error:
            raise InputError(f"{source}: {str(error).removeprefix(f'{source}: ')}; {MODEL_HINT}") from error


def of_workload(
    name: str,
    *,
    options: Mapping[str, Any] | None = None,
    source: str = "",
    settings: Sequence[str] = (),
    initial: str | None = None,
    by_place: bool = False,
) -> Decider:
    """Returns the checker of a workload's histories: its model, or the workload itself.

    Args:
        name: The workload's name.
        options: The options that a run records.
        source: The file that records them, for errors.
        settings: The user's options, which override them, as `NAME=VALUE`.
        initial: The user's initial state, which overrides the option of this name, if the workload has it.
        by_place: Whether `module:Name` is allowed, because the name is from the user.

    Raises:
        InputError: There is no such workload, it cannot be loaded or does not take its options, or its model is missing.
    """
    from harness.console.plugins import WORKLOADS, find  # noqa: PLC0415
    from harness.option_values import assigned, build, recorded  # noqa: PLC0415 - only for workloads

    workload = find(WORKLOADS, name, by_place=by_place).load()
    chosen = recorded(workload.Options, options or {}, source)
    chosen |= assigned(workload.Options, settings, flag=OPTION_FLAG, owner=f"the workload {plain_name(name)}")
    if workload.model is None:
        takes_initial = INITIAL in {str(field.name) for field in fields(workload.Options)}
        if takes_initial and initial is not None:
            chosen[INITIAL] = initial
        text = ", ".join(f"{option}={value}" for option, value in sorted(chosen.items()))
        judge = workload(build(workload.Options, chosen))
        return Decider(name=workload.name, judge=judge, options=text, takes_initial=takes_initial)
    try:
        return _of_model(workload.model, by_place=True)  # the name is from the workload's code
    except ModelError as error:
        raise InputError(f"the workload {plain_name(name)} needs a model that cannot be loaded: {error}") from error


def _of_model(name: str, *, by_place: bool) -> Decider:
    model = find_model(name, by_place=by_place)
    return Decider(name=model.name, model=model)
