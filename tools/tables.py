"""Writes the tables of the documentation that repeat code: `python tools/tables.py`.

Such a table stands between the lines `<!-- table NAME, made by tools/tables.py -->` and `<!-- end of the table -->`. A test
compares each with what this module makes, so no table is older than the code.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from checker.consistency import ANOMALIES, MODELS, ruled_out
from checker.formats.missing import THINGS
from checker.formats.readers import MAY_LACK
from cli import COMMANDS
from clusters.options import PIPES
from clusters.pipes import cluster as pipes
from clusters.sim.jvm.system import JavaNodes
from clusters.sim.linux import cluster as linux
from commands.options.choosing import SIMULATED_SYSTEM
from harness.capabilities import CLOCK, NAMES, ROOT, SIMULATED, Capabilities
from harness.console import plugins
from harness.declare import Topic, click_options
from harness.errors import ExitCode
from harness.option_values import hunted
from harness.suites.thresholds import MEASURES
from nemesis.builtin import KINDS, TRIGGERS
from nemesis.kinds import Called
from nemesis.lacking import impossible
from tools import site
from workloads.bank import judge as of_banks
from workloads.ledger import judge as of_ledgers
from workloads.lock import judge as of_locks
from workloads.log import judge as of_logs
from workloads.queue import judge as of_queues
from workloads.set import judge as of_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from nemesis.fault import Fault
    from nemesis.kinds import Kind, Variant

TABLE = re.compile(r"(<!-- table ([\w-]+), made by tools/tables.py -->\n).*?(<!-- end of the table -->\n)", re.DOTALL)
NAMED = "names"  # the target of a kind that needs the names of its nodes
OPTION = ("option", "meaning", "takes", "default")

Rows = list[tuple[str, ...]]


def kinds() -> Rows:
    """Returns the kinds of faults; those of one class share a row."""
    rows: Rows = [("kind (other names)", "effect", "default target", "needs", "proof")]
    first: dict[str, str] = {}
    for fault, several in _by_fault():
        names = ", ".join(_with_aliases(kind) for kind in several)
        names += "".join(f"; {_variant(kind, variant)}" for kind in several for variant in kind.variants)
        targets = ", ".join(NAMED if kind.target is None else f"`{kind.target}`" for kind in several)
        before = first.setdefault(fault.PROOF, several[0].name)
        proof = fault.PROOF if before == several[0].name else f"as for `{before}`"
        rows.append((names, fault.SUMMARY.rstrip("."), targets, _needs(fault), proof))
    return rows


def _by_fault() -> Iterator[tuple[type[Fault], list[Kind]]]:
    order = {fault: number for number, fault in enumerate(dict.fromkeys(kind.fault for kind in KINDS))}
    for fault, several in groupby(sorted(KINDS, key=lambda kind: order[kind.fault]), key=lambda kind: kind.fault):
        yield fault, list(several)


def _with_aliases(kind: Kind) -> str:
    others = ", ".join(f"`{alias}`" for alias in kind.aliases)
    return f"`{kind.name}`" + (f" ({others})" if others else "")


def _variant(kind: Kind, variant: Variant) -> str:
    others = "".join(f", `{alias}`" for alias in variant.aliases)
    called = Called(name=variant.name, kind=kind, target=variant.target)
    return f"`{variant.name}`{others} for `{called.meaning}`"


def _needs(fault: type[Fault]) -> str:
    needs = sorted(fault.needs(()) - {ROOT})
    return ", ".join(f"{need} or {fault.INSTEAD[need]}" if need in fault.INSTEAD else need for need in needs)


def places_of_kinds() -> Rows:
    """Returns where each kind of fault has an effect, by what nodes can do there; kinds with the same places share a row.

    A capability that only some machines have, such as `netem`, or only some systems, such as a leader, counts as there.
    """
    places = {
        "machines, real or virtual": Capabilities(available=frozenset(NAMES)),
        "`local` nodes": Capabilities(available=frozenset(NAMES) - {CLOCK}),
        "Java by seed": Capabilities(available=frozenset({SIMULATED}), missing=JavaNodes.lacks),
        "programs by seed": Capabilities(available=frozenset({SIMULATED}), missing=linux.LACKS),
        f"`{SIMULATED_SYSTEM}`": Capabilities(
            available=frozenset({SIMULATED}), missing=plugins.load(plugins.SYSTEMS, SIMULATED_SYSTEM).lacks
        ),
        "node programs on pipes": Capabilities(available=frozenset({SIMULATED}), missing=pipes.LACKS),
    }
    none = [impossible({"n1": can}) for can in places.values()]
    several: dict[tuple[str, ...], list[str]] = {}
    for kind in KINDS:
        cells = tuple("" if kind.name in lacking else "yes" for lacking in none)
        several.setdefault(cells, []).append(f"`{kind.name}`")
    return [("kinds", *places), *((", ".join(names), *cells) for cells, names in several.items())]


def options_of_kinds() -> Rows:
    """Returns the options of the kinds of faults; kinds with the same option share a row."""
    several: dict[tuple[str, ...], list[str]] = {}
    for fault, kinds_of_fault in _by_fault():
        for name, option in fault.OPTIONS.items():
            default = "" if option.default is None else f"`{option.default}`"
            cells = (f"`{name}`", option.meaning.rstrip("."), option.expected, default)
            several.setdefault(cells, []).append(f"`{kinds_of_fault[0].name}`")
    return [
        ("kind", "option", "meaning", "takes", "default"),
        *((", ".join(names), *cells) for cells, names in several.items()),
    ]


def triggers() -> Rows:
    """Returns the triggers of faults in the form of the command line, with their parameters."""
    rows: Rows = [("trigger", "the fault begins with", "parameters", "names a node")]
    for trigger in TRIGGERS:
        options = trigger.condition.OPTIONS
        form = "".join(
            f":{name.upper()}" if about.default is None and about.needed else f"[:{name.upper()}]"
            for name, about in options.items()
        )
        meanings = [
            f"{name.upper()}: {about.meaning.rstrip('.')}" + ("" if about.default is None else f" (`{about.default}`)")
            for name, about in options.items()
        ]
        named = "yes" if trigger.condition.NAMES_NODE else ""
        rows.append((f"`{trigger.name}{form}`", trigger.condition.SUMMARY.rstrip("."), "; ".join(meanings), named))
    return rows


def log_lines() -> Rows:
    """Returns the lines of logs that the systems of Labrys name."""
    rows: Rows = [("system", "line", "what it tells")]
    for name, system in _own(plugins.SYSTEMS):
        rows += [(f"`{name}`", f"`{line}`", about.meaning) for line, about in system.log_lines.items()]
    return rows


def measures() -> Rows:
    """Returns the measures of thresholds."""
    return [("measure", "what it is"), *((f"`{name}`", meaning) for name, meaning in MEASURES.items())]


def lacking() -> Rows:
    """Returns what an event may lack in each format, by the readers."""
    rows: Rows = [("format", *THINGS)]
    return [*rows, *((name, *(str(lacks[thing]) for thing in THINGS)) for name, lacks in MAY_LACK.items())]


def exit_codes() -> Rows:
    """Returns the exit codes."""
    return [("exit code", "meaning"), *((str(int(code)), code.meaning) for code in ExitCode)]


def _places(group: str) -> dict[str, str]:
    """Returns where the classes of Labrys' own plug-ins are, by their names, whatever is installed."""
    points = tomllib.loads((site.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    return dict(sorted(points[group].items()))


def _own(group: str) -> Iterator[tuple[str, Any]]:
    """Yields the names and the classes of Labrys' own plug-ins."""
    for name, location in _places(group).items():
        yield name, _loaded(location)


def _loaded(location: str) -> Any:
    module, _, attribute = location.partition(plugins.PLACE_SEPARATOR)
    return getattr(importlib.import_module(module), attribute)


def _functions(location: str) -> Rows:
    """Returns the functions of a workload; one that takes different arguments has a row for each."""
    rows: Rows = [("function", "argument", "result")]
    for name, text in _loaded(location).functions.items():
        for form in re.split(r"; (?=[^;]* -> )", text):
            argument, _, result = form.partition(" -> ")
            rows.append((f"`{name}`", argument, result))
    return rows


def _options(location: str) -> Rows:
    """Returns the options of a plug-in, as its help has them; a column says which ones a verdict depends on, if any."""
    options = _loaded(location).Options
    judging = {option.name for option in click_options(options, judging=True)}
    drawn = hunted(options)
    rows: Rows = [(*OPTION, "verdict") if judging else OPTION]
    for option in click_options(options):
        flag, meaning, *others = _about(option)
        values = ", ".join(_given(value) for value in drawn.get(option.name or "", ()))
        meaning += f" (a hunt draws {values})" if values else ""
        rows.append((flag, meaning, *others, *(["yes" if option.name in judging else ""] if judging else [])))
    return rows


def _options_of_test(topic: Topic) -> Rows:
    """Returns the options of `labrys test` below a heading of its help."""
    options = [option for option in _loaded(COMMANDS["test"][0]).params if _is_shown(option) and option.topic == topic]
    return [OPTION, *map(_about, options)]


def _options_of_commands() -> Rows:
    """Returns the options of the other commands that `labrys test` does not have."""
    test = {option.name for option in _loaded(COMMANDS["test"][0]).params}
    rows: Rows = [OPTION]
    for name, (location, _) in COMMANDS.items():
        command = _loaded(location)
        parts = getattr(command, "commands", {}).items()
        for path, part in ((name, command), *((f"{name} {inner}", part) for inner, part in parts)):
            for option in part.params:
                if option.name not in test and _is_shown(option):
                    flag, *others = _about(option)
                    rows.append((f"`{path}` {flag}", *others))
    return rows


def _is_shown(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.hidden and bool(option.help)


def _about(option: click.Option) -> tuple[str, str, str, str]:
    """Returns the name of an option, what it means, what it takes, and its default."""
    meaning = (option.help or "").partition("  [default: ")[0].rstrip(".")
    taken = "" if option.is_flag and not option.secondary_opts else _taken(option.type)
    return f"`{option.opts[0]}`", meaning, taken, "" if not taken else _given(option.default)


def _taken(kind: click.ParamType[Any]) -> str:
    """Returns what an option takes."""
    if isinstance(kind, click.Choice):
        return ", ".join(map(str, kind.choices))
    if isinstance(kind, (click.IntRange, click.FloatRange)):
        return f"{'above ' if kind.min_open else ''}{_number(kind.min)} to {_number(kind.max)}"
    if isinstance(kind, click.Tuple):
        return "; ".join(map(_taken, kind.types))
    return "yes, no" if kind.name == "boolean" else f"a {kind.name}"


def _given(default: Any) -> str:
    """Returns the default of an option; empty if it has none."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, (int, float)):
        return _number(default)
    return f"`{default}`" if isinstance(default, str) and default else ""  # anything else is click's mark of no default


def _number(value: Any) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _models() -> Rows:
    """Returns the models of the checker."""
    rows: Rows = [("`--model`", "object, functions, initial state")]
    for name, model in _own(plugins.MODELS):
        text = " ".join((model.__doc__ or "").partition("\n\n")[0].split())
        rows.append((f"`{name}`", text.rstrip(".")))
    return rows


def _consistency_models() -> Rows:
    """Returns the consistency models of transactions."""
    rows: Rows = [("model", "aliases", "implies directly", "prohibits itself")]
    for model in MODELS:
        cells = (model.aliases, model.implies, model.prohibits)
        rows.append((f"`{model.name}`", *(", ".join(f"`{name}`" for name in cell) for cell in cells)))
    return rows


def _anomalies_of_transactions() -> Rows:
    """Returns the anomalies of transactions, with the weakest models that each contradicts."""
    rows: Rows = [("type", "what it is", "the weakest models that prohibit it")]
    for name, meaning in ANOMALIES.items():
        weakest, _ = ruled_out([name])
        rows.append((f"`{name}`", meaning[0].upper() + meaning[1:], ", ".join(f"`{model}`" for model in weakest)))
    return rows


def _workloads() -> Rows:
    """Returns the workloads, with what checks them and the systems of Labrys that serve them."""
    systems = [system for _, system in _own(plugins.SYSTEMS)]
    rows: Rows = [("workload", "what it does", "checked by", "systems of Labrys that support it")]
    for name, workload in _own(plugins.WORKLOADS):
        model = workload.model
        own = model is not None and plugins.PLACE_SEPARATOR in model
        judge = "a model of its own" if own else f"the model [`{model}`](checker.md#models)" if model else "its judge"
        serving = [f"`{system.name}`" for system in systems if name in system.serves]
        rows.append((f"[`{name}`](#{name})", workload.summary.rstrip("."), judge, ", ".join(serving) or "none yet"))
    return rows


def _promises() -> Rows:
    """Returns what each system promises with its default options, and the options of the workload that follow."""
    rows: Rows = [("system", "workloads", "it promises", "by", "so the workload has")]
    for system, cls in _own(plugins.SYSTEMS):
        several: dict[tuple[str, str, str], list[str]] = {}
        for workload, promise in cls.promises(cls.Options()).items():
            options = ", ".join(
                f"`{name.replace('_', '-')}` = `{_value(value)}`" for name, value in promise.options.items()
            )
            several.setdefault((promise.sentence, promise.source, options), []).append(f"`{workload}`")
        rows += [
            (f"`{system}`", ", ".join(names), sentence, source, options or "its own defaults")
            for (sentence, source, options), names in several.items()
        ]
    return rows


def _folders() -> Rows:
    """Returns the folders of the systems, with what is in them."""
    rows: Rows = [("system", "pages", "findings", "suites")]
    names: dict[str, list[str]] = {}
    for name, system in _own(plugins.SYSTEMS):
        names.setdefault(system.__module__.split(".")[2], []).append(f"`{name}`")
    for folder, systems in names.items():
        own_folder = site.ROOT / site.SYSTEMS / folder
        cells = [
            ", ".join(
                f"[{path.name}](../../{path.relative_to(site.ROOT)})" for path in sorted(own_folder.glob(pattern))
            )
            for pattern in ("*.md", "findings/*.md")
        ]
        suites = ", ".join(f"`{path.stem}`" for path in sorted(own_folder.glob("suites/*.toml")))
        rows.append((", ".join(systems), *cells, suites))
    return rows


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def kinds_of(judge: ModuleType) -> Mapping[str, str]:
    """Returns what a judge finds, by the word for it, from the list in its docstring."""
    items = re.findall(r"^- `([\w-]+)`: (.*(?:\n  .*)*)", judge.__doc__ or "", re.MULTILINE)
    return {kind: " ".join(text.split()) for kind, text in items}


def _found_by(judge: ModuleType) -> Callable[[], Rows]:
    def rows() -> Rows:
        entries = kinds_of(judge).items()
        return [
            ("kind", "what the judge found"),
            *((f"`{kind}`", text[0].upper() + text[1:]) for kind, text in entries),
        ]

    return rows


def _of_own_kind() -> Iterator[tuple[str, str]]:
    """Yields the names and the places of the workloads; without those for programs with pipes alone."""
    systems = [system for _, system in _own(plugins.SYSTEMS)]
    for name, location in _places(plugins.WORKLOADS).items():
        places = [system.only_on for system in systems if name in system.serves]
        if not places or any(location != PIPES for location in places):
            yield name, location


def _of_own_functions() -> Iterator[tuple[str, str]]:
    """Yields those of them whose functions are not a part of those of another workload of their package."""
    functions = {location: set(_loaded(location).functions) for _, location in _of_own_kind()}
    for name, location in _of_own_kind():
        package = location.rpartition(".")[0]
        if not any(functions[location] < more for other, more in functions.items() if other.startswith(package)):
            yield name, location


TABLES: Mapping[str, Callable[[], Rows]] = MappingProxyType(
    {
        "kinds-of-faults": kinds,
        "places-of-faults": places_of_kinds,
        "options-of-faults": options_of_kinds,
        "triggers": triggers,
        "log-lines": log_lines,
        "measures": measures,
        "exit-codes": exit_codes,
        "lacking": lacking,
        "models": _models,
        "consistency-models": _consistency_models,
        "anomalies-of-transactions": _anomalies_of_transactions,
        "workloads": _workloads,
        **{f"options-of-test-{topic.name.lower()}": partial(_options_of_test, topic) for topic in Topic},
        "options-of-commands": _options_of_commands,
        "folders-of-systems": _folders,
        "promises": _promises,
        "anomalies-of-logs": _found_by(of_logs),
        "anomalies-of-ledgers": _found_by(of_ledgers),
        "anomalies-of-queues": _found_by(of_queues),
        "anomalies-of-locks": _found_by(of_locks),
        "anomalies-of-sets": _found_by(of_sets),
        "anomalies-of-banks": _found_by(of_banks),
        **{f"functions-of-{name}": partial(_functions, location) for name, location in _of_own_functions()},
        **{f"options-of-{name}": partial(_options, location) for name, location in _of_own_kind()},
        **{
            f"options-of-system-{name}": partial(_options, location)
            for name, location in _places(plugins.SYSTEMS).items()
        },
    }
)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Returns a table with a head as Markdown."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def written(page: str) -> str:
    """Returns a page with its tables made anew."""
    return TABLE.sub(lambda match: f"{match[1]}\n{markdown(TABLES[match[2]]())}\n{match[3]}", page)


if __name__ == "__main__":
    for path in (site.ROOT / page for page in site.pages()):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
