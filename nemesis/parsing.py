"""Parses what users write about faults into the values of `nemesis.asked`.

The names of kinds and triggers are checked here, and so are the options of a kind. Whether roles and nodes exist, and
whether the kinds fit together, depends on the nodes of a run: `nemesis.chosen.choose_all` checks that.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, TypeVar

from harness.console.documents import shown
from harness.console.parameters import MAX_RUN_S
from nemesis.asked import (
    AIM_SEPARATOR,
    ALL_KINDS,
    NO_KIND,
    WITHOUT,
    Asked,
    ByKind,
    EveryKind,
    KindOptions,
    NoKind,
    Quiet,
    Request,
    Span,
    Without,
)
from nemesis.errors import PlanError
from nemesis.kinds import find_called, find_kind
from nemesis.targets import parse_aim
from nemesis.triggers import parse_trigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.faults import Trigger
    from harness.op import Value
    from nemesis.asked import Part

T = TypeVar("T")


def request_of(text: str) -> Request:
    """Parses kinds: `kind`, `kind:target`, `all`, `-kind` and `none`, with commas between them.

    Raises:
        PlanError: A part is no kind, or the parts exclude each other. The message has a suggestion.
    """
    request = Request(tuple(_part(part.strip()) for part in text.split(",") if part.strip()))
    if NoKind() in request.parts and len(request.parts) > 1:
        raise PlanError(f"{NO_KIND!r} among the faults excludes all others, and there are {text}")
    if request.without and not request.every_kind:
        alone = f"{WITHOUT}{request.without[0]}"
        raise PlanError(f"{alone!r} leaves a kind out of `all`, and `all` is not there; e.g. all,{alone}")
    return request


def _part(text: str) -> Part:
    if text == ALL_KINDS:
        return EveryKind()
    if text == NO_KIND:
        return NoKind()
    if text.startswith(WITHOUT):
        return Without(find_called(text.removeprefix(WITHOUT).strip()).name)
    return asked_of(text)


def asked_of(text: str) -> Asked:
    """Parses one kind: `kind` or `kind:target`. A target can be roles, or begin with them.

    Raises:
        PlanError: There is no such kind. The message has a suggestion.
    """
    name, separator, aim = text.partition(AIM_SEPARATOR)
    return Asked(kind=find_called(name.strip()).name, aim=parse_aim(aim.strip()) if separator else None)


def spans_of(text: str) -> ByKind[Span]:
    """Parses ranges of seconds: `low-high`, or one number for both, and `kind=low-high` for single kinds.

    Raises:
        PlanError: A part has another form, or occurs twice.
    """
    return _by_kind(text, _span, "ranges")


def _span(seconds: str, part: str) -> Span:
    low, _, high = seconds.partition("-")
    try:
        return Span(float(low), float(high or low))
    except ValueError:
        raise PlanError(
            f"expected a range of seconds such as 6-15, or one number, or KIND=6-15; not {shown(part)}"
        ) from None


def quiet_of(text: str) -> Quiet:
    """Parses two numbers of seconds such as `5-10`, or one for both.

    Raises:
        PlanError: The text has another form.
    """
    first, _, second = text.partition("-")
    try:
        quiet = Quiet(float(first), float(second or first))
    except ValueError:
        quiet = Quiet(math.nan, math.nan)
    if not all(0 <= seconds <= MAX_RUN_S for seconds in (quiet.before_s, quiet.after_s)):
        raise PlanError(f"expected seconds of quiet before and after the faults such as 5-10, not {shown(text)}")
    return quiet


def triggers_of(text: str) -> ByKind[Trigger]:
    """Parses triggers: `TRIGGER` for all kinds, and `KIND=TRIGGER` for single ones. Their limits are 0.

    Raises:
        PlanError: A part has another form, occurs twice, or names an unknown trigger.
    """
    return _by_kind(text, lambda value, _: parse_trigger(value, 0.0), "triggers") if text else ByKind()


def options_of(text: str) -> KindOptions:
    """Parses options of kinds: `kind.option=value`, with commas between them. A value is JSON, or a text if it is not JSON.

    Raises:
        PlanError: A part has another form, repeats an option, or has a value that the kind does not accept.
    """
    given: dict[str, dict[str, Value]] = {}
    for part in (part.strip() for part in text.split(",") if part.strip()):
        name, equals, value = part.partition("=")
        called, dot, option = name.strip().partition(".")
        if not (equals and dot and called and option):
            raise PlanError(
                f"expected KIND.OPTION=VALUE in --fault-options, e.g. packet-loss.probability=0.5; found {shown(part)}"
            )
        options = given.setdefault(find_called(called).name, {})
        if option in options:
            raise PlanError(f"the option {called}.{option} is given twice")
        try:
            options[option] = json.loads(value)
        except (ValueError, RecursionError):
            options[option] = value.strip()
    for kind, options in given.items():
        find_kind(kind).fault.settle(kind, options)
    return KindOptions(given)


def _by_kind(text: str, parse: Callable[[str, str], T], several: str) -> ByKind[T]:
    """Parses values, and `kind=value`, with commas between them.

    Args:
        text: The text.
        parse: Makes the value of its text; the second text is the whole part, for errors.
        several: What messages call several values.
    """
    usual: T | None = None
    own: dict[str, T] = {}
    for part in (part.strip() for part in text.split(",")):
        name, equals, value = part.rpartition("=")
        kind = find_called(name.strip()).name if equals else None
        parsed = parse(value.strip(), part)
        if usual is not None if kind is None else kind in own:
            raise PlanError(f"{shown(text)} has two {several} for {kind or 'all kinds'}")
        if kind is None:
            usual = parsed
        else:
            own[kind] = parsed
    return ByKind(usual, own)
