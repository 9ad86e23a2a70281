"""The commands `labrys systems`, `labrys workloads` and `labrys faults`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from commands.options.choosing import Chosen, installed
from commands.options.subjects import places_of
from harness.console import plugins
from harness.console.parameters import Choice, Completed
from harness.console.plain import one_line
from harness.console.sources import DefaultsCommand
from harness.console.terminal import echo
from harness.errors import InputError
from harness.traits import Tier
from nemesis.choices import FAULT_OPTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nemesis.options import Option
    from nemesis.triggers import TriggerKind

TRIGGER = "trigger"  # in the column of targets
TIERS: Final[Mapping[str | None, str]] = {
    Tier.FINDING: "Systems in which Labrys found defects",
    Tier.PROMISE: "Systems whose promise held",
    Tier.CONTROL: "Systems that promise less than a test can ask",
    Tier.BENCH: "Benches on which Labrys tries itself, and programs of your own",
    None: "Other systems",
}


def _kinds(_: str) -> list[str]:
    from nemesis.kinds import all_called
    from nemesis.triggers import all_triggers

    return [*all_called(), *all_triggers()]


_format = click.option(
    "--format", "output", type=Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)


@click.command("systems", cls=DefaultsCommand)
@_format
def systems(*, output: str) -> None:
    """Lists the systems by what tests of them are for, each with the workloads that it supports."""
    rows = [_system(name, chosen) for name, chosen in installed(plugins.SYSTEMS)]
    if output == "json":
        _show(rows, output)
        return
    width = max((len(row["name"]) for row in rows), default=0)
    parts = [(heading, [row for row in rows if row.get("tier") == tier]) for tier, heading in TIERS.items()]
    for number, (heading, of_tier) in enumerate(part for part in parts if part[1]):
        echo(f"{chr(10) if number else ''}{heading}:")
        _show(of_tier, output, width=width)


@click.command("workloads", cls=DefaultsCommand)
@_format
def workloads(*, output: str) -> None:
    """Lists the workloads, each with its operations and the systems that support it."""
    serving = {
        name: getattr(chosen.type, "serves", {})
        for name, chosen in installed(plugins.SYSTEMS)
        if isinstance(chosen, Chosen)
    }
    rows = []
    for name, chosen in installed(plugins.WORKLOADS):
        row = _about(plugins.WORKLOADS, name, chosen)
        if isinstance(chosen, Chosen):
            row["functions"] = dict(chosen.type.functions)
            row["model"] = chosen.type.model
            row["systems"] = [system for system, serves in serving.items() if name in serves]
        rows.append(row)
    _show(rows, output)


@click.command("faults", cls=DefaultsCommand)
@click.argument("kind", type=Completed(_kinds), required=False)
@FAULT_OPTION
@_format
def faults(*, kind: str | None, fault: str | None, output: str) -> None:  # noqa: ARG001 - the option adds the kinds
    """Lists the kinds of faults and the triggers with which faults can begin, or describes KIND, which may be a trigger.

    The description has the target, the options, the needs on the nodes, and the proof that the fault took effect.
    """
    from nemesis.kinds import all_called, find_called, registry
    from nemesis.triggers import all_triggers
    from nemesis.triggers import registry as of_triggers

    if kind is None:
        for why in (*registry().broken.values(), *of_triggers().broken.values()):
            echo(one_line(why), err=True)
        rows = [
            {
                "name": called.name,
                "target": str(called.target or "named"),
                "summary": f"Another name of {called.meaning}." if called.is_variant else called.kind.fault.SUMMARY,
            }
            for called in all_called().values()
        ]
        triggers = [
            {"name": trigger.name, "target": TRIGGER, "summary": trigger.condition.SUMMARY}
            for trigger in all_triggers().values()
        ]
        _show([*rows, *triggers], output)
        return
    if kind in all_triggers():
        _describe(_trigger(all_triggers()[kind]), output)
        return
    called = find_called(kind)
    fault_kind = called.kind
    variants = {variant.name: variant for variant in fault_kind.variants}
    row: dict[str, Any] = {
        "name": called.name,
        **({"stands for": called.meaning} if called.is_variant else {}),
        "summary": fault_kind.fault.SUMMARY,
        "aliases": list(variants[called.name].aliases if called.is_variant else fault_kind.aliases),
        "target": str(called.target) if called.target else "names of nodes, which must be given",
        "in all": fault_kind.in_all and not called.is_variant,
        "needs": sorted(fault_kind.fault.needs(())),
        "proof": fault_kind.fault.PROOF,
        "options": _options(fault_kind.fault.OPTIONS),
    }
    _describe(row, output)


def _trigger(trigger: TriggerKind) -> dict[str, Any]:
    from nemesis.conditions import LogLineAppears

    return {
        "name": trigger.name,
        "summary": trigger.condition.SUMMARY,
        "target": TRIGGER,
        "names a node": trigger.condition.NAMES_NODE,
        "options": _options(trigger.condition.OPTIONS),
        **(_log_lines() if issubclass(trigger.condition, LogLineAppears) else {}),
    }


def _log_lines() -> dict[str, dict[str, str]]:
    """Returns the log lines that each installed system names, with their meanings."""
    return {
        f"lines of {name}": {
            line: f"{about.meaning} ({about.pattern})" for line, about in chosen.type.log_lines.items()
        }
        for name, chosen in installed(plugins.SYSTEMS)
        if isinstance(chosen, Chosen) and chosen.type.log_lines
    }


def _options(options: Mapping[str, Option]) -> dict[str, str]:
    return {
        name: f"{option.meaning} Takes {option.expected}"
        + ("" if option.default is None else f"; {option.default} by default")
        for name, option in options.items()
    }


def _describe(row: Mapping[str, Any], output: str) -> None:
    if output == "json":
        echo(json.dumps(row, indent=2))
        return
    for word, value in row.items():
        if isinstance(value, dict):
            echo(f"{word}:" if value else f"{word}: none")
            for name, text in value.items():
                echo(f"  {name}: {one_line(text)}")
        else:
            echo(f"{word}: {one_line(', '.join(value) or 'none' if isinstance(value, list) else _text(value))}")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _about(group: str, name: str, chosen: Chosen | InputError) -> dict[str, Any]:
    package = plugins.plugins(group)[name].package
    if isinstance(chosen, InputError):
        return {"name": name, "package": package, "error": str(chosen)}
    return {"name": name, "package": package, "summary": chosen.type.summary}


def _system(name: str, chosen: Chosen | InputError) -> dict[str, Any]:
    row = _about(plugins.SYSTEMS, name, chosen)
    if isinstance(chosen, Chosen):
        row["workloads"] = dict(getattr(chosen.type, "serves", {}))
        row["places"] = places_of(chosen.type)
        promise = chosen.type.on_damage
        row["on_damage"] = None if promise is None else {**asdict(promise), "handling": str(promise.handling)}
        row["tier"] = None if chosen.type.tier is None else str(chosen.type.tier)
    return row


def _show(rows: list[dict[str, Any]], output: str, *, width: int = 0) -> None:
    if output == "json":
        echo(json.dumps(rows, indent=2))
        return
    width = max((width, *(len(row["name"]) for row in rows)))
    target_width = max((len(row.get("target", "")) for row in rows), default=0)
    for row in rows:
        target = f"{row['target']:<{target_width}}  " if "target" in row else ""
        echo(f"{row['name']:<{width}}  {target}{one_line(row.get('error') or row['summary'])}")
        for word in ("workloads", "functions"):
            for name, text in row.get(word, {}).items():
                echo(f"{'':<{width}}    {name}: {one_line(text)}")
        if row.get("on_damage"):
            echo(f"{'':<{width}}    damaged files: {one_line(row['on_damage']['sentence'])}")
        if row.get("places"):
            echo(f"{'':<{width}}    runs with: {', '.join(row['places'])}")
        if "systems" in row:
            echo(f"{'':<{width}}    supported by: {', '.join(row['systems']) or 'no installed system'}")
