"""The options of a workload that follow the promise of the system; see `harness.promise`.

They are defaults: a flag, the environment and `labrys.toml` count more. With `--no-promises`, and in a case of a suite that
does not set `promises`, the workload has its own defaults, as in Labrys before promises. So suites keep their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from click.core import ParameterSource

from harness.blame import Blamable, blaming
from harness.console import sources as opt
from harness.console.documents import shown
from harness.console.plain import name as plain_name
from harness.console.suggest import did_you_mean
from harness.declare import Topic, click_options, option
from harness.errors import InputError, PluginError
from harness.option_values import build
from harness.promise import Promise, PromiseTested
from harness.system import System

if TYPE_CHECKING:
    import click

PROMISES: Final = "promises"
NODES: Final = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseOptions:
    """Whether the options of the workload follow the promise of the system."""

    TOPIC: ClassVar = Topic.LOAD

    promises: bool = option(
        True,  # noqa: FBT003 - it takes no keyword
        "Whether options of the workload that are not given follow what the system promises. Without it, they have the "
        "workload's own defaults, as in a case of a suite.",
    )


def promise_of(system: type, options: Any, workload: str) -> Promise | None:
    """Returns the promise of a system to a workload; None if it says nothing.

    Args:
        system: The class of the system.
        options: An object of its `Options`.
        workload: The name of the workload.

    Raises:
        PluginError: The code of the system failed, or returned something else.
    """
    if not issubclass(system, System):
        return None
    called = f"system {plain_name(getattr(system, 'name', system.__qualname__))}"
    with blaming(Blamable(system, called)):
        promises: object = system.promises(options)
    if not isinstance(promises, Mapping):
        raise PluginError(f"{called}: promises returned {shown(repr(promises))}, not a mapping; correct the system")
    return promises.get(workload)


def values_of(promise: Promise | None, workload: Any) -> dict[str, Any]:
    """Returns the values of the workload's options that ask for the promise, by name, in the types of the command line.

    Raises:
        InputError: The promise names an option that the workload does not have.
    """
    if promise is None:
        return {}
    known = {str(parameter.name) for parameter in click_options(workload.Options)}
    for name in promise.options:
        if name not in known:
            raise InputError(
                f"the promise of the system names the option {plain_name(name)}, and the workload {plain_name(workload.name)} "
                f"has no such option. {did_you_mean(name, known)}"
            )
    return {name: str(value) if isinstance(value, Enum) else value for name, value in promise.options.items()}


def promised_options(system: type, options: Any, workload: Any) -> list[click.Option]:
    """Returns the options of a workload, with the defaults that ask for the promise of the system.

    Args:
        system: The class of the system.
        options: An object of its `Options`.
        workload: The class of the workload.
    """
    values = values_of(promise_of(system, options, workload.name), workload)
    declared = click_options(workload.Options)
    for parameter in declared:
        if parameter.name in values:
            parameter.default = values[parameter.name]
    return declared


def follow(ctx: click.Context, system: Any, workload: Any, *, of_suite: bool) -> None:
    """Gives each option of the workload that has no other source the value of the promise, or the workload's own default.

    Args:
        ctx: The context of the command, with its values.
        system: The class of the system.
        workload: The class of the workload.
        of_suite: Whether the test is a case of a suite.
    """
    try:
        options = build(system.Options, ctx.params)
    except InputError:
        return  # the values do not fit together, and who makes the options says so
    promised = values_of(promise_of(system, options, workload.name), workload)
    usual = values_of(promise_of(system, system.Options(), workload.name), workload)
    own = {str(parameter.name): parameter.default for parameter in click_options(workload.Options)}
    follows = ctx.params.get(PROMISES, True)
    if of_suite and ctx.get_parameter_source(PROMISES) is ParameterSource.DEFAULT:
        follows = False
    for name in {**usual, **promised}:
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            ctx.params[name] = promised.get(name, own[name]) if follows else own[name]
    if getattr(system, "usual_nodes", None) and ctx.get_parameter_source(NODES) is ParameterSource.DEFAULT:
        ctx.params[NODES] = system.usual_nodes
    if PROMISES in ctx.params:
        # A command line can say any value but None. So only then the reproduce line needs `--no-promises`.
        unsaid = any(ctx.params[name] is None and value is not None for name, value in promised.items())
        ctx.params[PROMISES] = follows or not unsaid


def kept(values: Mapping[str, Any], promised: Mapping[str, Any]) -> bool:
    """Returns whether a command line with promises can say the values of a run that recorded no `promises`."""
    return all(values.get(name) is not None or value is None for name, value in promised.items())


def promise_tested(system: Any, options: Any, workload: Any, own: Any) -> PromiseTested:
    """Returns which promise a test asks for.

    Args:
        system: The class of the system.
        options: An object of its `Options`.
        workload: The class of the workload.
        own: An object of the workload's `Options`.
    """
    promise = promise_of(system, options, workload.name)
    promised = values_of(promise, workload)
    others: list[str] = []
    judging = {str(parameter.name) for parameter in click_options(workload.Options, judging=True)}
    for parameter in click_options(workload.Options):
        name = str(parameter.name)
        if name not in judging | promised.keys():
            continue
        value = getattr(own, name)
        value = str(value) if isinstance(value, Enum) else value
        if value == promised.get(name, parameter.default):
            continue
        others += opt.spelled_out([parameter], {name: value}) if value is not None else [f"no {parameter.opts[0]}"]
    if promise is None:
        return PromiseTested(others=tuple(others))
    return PromiseTested(promise=promise.sentence, source=promise.source, others=tuple(others))
