"""The `labrys` command: finds a command by its name, imports it, and sets the exit code.

This module imports each command on use, so that `labrys --help` and `labrys check` on a small file start at once. Verdicts and
machine-readable output go to standard output, and everything else to standard error. Exit codes: 0 valid, 1 invalid, 2 unknown,
254 bad arguments, 255 an error of Labrys or of the machines, 130 interrupted.
"""

from __future__ import annotations

if __name__ == "__main__":
    import harness.console.process

    harness.console.process.main()  # imports this module again by its name, so that a failed import ends with 255

import importlib
import io
import logging
import os
import sys
from pathlib import Path

import click

from harness.console import process
from harness.console import sources as opt
from harness.console.parameters import existing_file
from harness.console.terminal import PlainFormatter
from harness.errors import ExitCode, InputError

# Each command under its heading of `labrys --help`, with its module and attribute, and its line there.
GROUPS = {
    "Run": {
        "test": ("commands.run.test:run_test", "Run a test."),
        "suite": ("commands.suite.command:run_whole_suite", "Run all tests of a file."),
        "hunt": ("commands.hunt.command:hunt", "Run many seeds in the simulator until a run is invalid."),
        "crash": ("commands.crash.command:crash", "Let a node lose its power at every step of its disk."),
        "explore": (
            "commands.hunt.explore:explore",
            "Visit every order of events of a simulated system, within bounds.",
        ),
        "plan": ("commands.run.plan:show_plan", "Print the faults and first operations of a seed."),
    },
    "Judge": {
        "check": ("commands.check.command:check", "Check a history."),
        "analyze": ("commands.check.analyze:analyze", "Check and plot many histories, with Spark if they are large."),
        "triage": ("commands.triage.command:triage", "Put runs that are not as expected into groups by their causes."),
    },
    "Look at a run": {
        "report": ("commands.look.report:report", "Write the report of a run again."),
        "serve": ("commands.look.report:serve", "Show the store in a browser."),
        "explain": ("commands.replay.explain:explain_run", "Print the violation of a run in order."),
        "logs": ("commands.look.logs:show_logs", "Print all logs of a run in one order."),
        "calls": ("commands.look.calls:compare_calls", "Print the first difference of two logs of calls."),
        "replay": ("commands.replay.command:replay_run", "Run the plan of a run again."),
        "shrink": ("commands.shrink.command:shrink_run", "Find a smaller run that fails in the same way."),
        "bisect": ("commands.bisect.command:bisect", "Find the release or the mend with which a run changes."),
    },
    "Set up": {
        "systems": ("commands.look.listing:systems", "List the systems."),
        "workloads": ("commands.look.listing:workloads", "List the workloads."),
        "faults": ("commands.look.listing:faults", "List the kinds of faults."),
        "doctor": ("commands.setup.clusters:doctor", "Show what this machine and its nodes lack."),
        "cluster": ("commands.setup.clusters:cluster", "Make, show, heal and remove local clusters."),
        "build": ("commands.setup.build:build", "Build what a system installs on its nodes."),
        "new": ("commands.setup.new:new", "Make a package for a system or a workload of your own."),
        "store": ("commands.look.store:store", "Remove runs that are no longer needed."),
    },
}
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}
COMPLETION = "_LABRYS_COMPLETE"
CONFIG_FILE = "labrys.toml"


class LazyGroup(opt.Group):
    """A group that imports each command on use, and gives it the defaults of `labrys.toml`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the same in each context
        """Returns the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports and returns a command; None if no command has this name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        if not ctx.resilient_parsing and not getattr(command, "finds_defaults", False):
            self._apply_defaults(ctx, command, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Writes a line for each command, and imports none."""
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])

    def _apply_defaults(self, ctx: click.Context, command: click.Command, name: str) -> None:
        """Gives a command its defaults from the environment and `labrys.toml`."""
        path, table = opt.table_of(ctx, name)
        own = opt.options_of(command)
        if not isinstance(command, click.Group):
            opt.warn_unread(name, own)
        ctx.default_map = {name: opt.give_defaults(own, name, path, table)}


def _config_file(_ctx: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    return value or (Path(CONFIG_FILE) if os.path.isfile(CONFIG_FILE) else None)  # noqa: PTH113 - Path.is_file may raise


@click.group(
    cls=LazyGroup,
    context_settings={"auto_envvar_prefix": opt.ENVIRONMENT_PREFIX, "help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 valid, 1 invalid, 2 unknown, 254 bad arguments, 255 internal error, 130 interrupted.",
)
@click.version_option(package_name="labrys")
@click.option(
    "--config",
    type=existing_file(),
    callback=_config_file,
    is_eager=True,
    help=f"A TOML file with default options. It has a table for each command; plan uses the table [test].  "
    f"[default: {CONFIG_FILE}, if it exists]",
)
def labrys(config: Path | None) -> None:
    """Finds consistency bugs in replicated systems.

    Labrys runs concurrent clients against a cluster, and injects faults. It records every operation, and checks whether the
    history is linearizable.
    """


def invoke(arguments: list[str]) -> int:
    """Carries out a command line.

    Click's `labrys.main` does not fit: it ends the process with 1 when a pipe breaks.

    Returns:
        The exit code.

    Raises:
        InputError: The input or the environment is not valid.
    """
    completion = os.environ.get(COMPLETION)
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PlainFormatter())
    try:
        if completion:
            return _complete(completion)
        with labrys.make_context("labrys", list(arguments)) as ctx:
            labrys.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        source = opt.source_of(error) if isinstance(error, click.UsageError) else ""
        process.say(f"{text.getvalue().rstrip()} {source}".rstrip())
        return ExitCode.BAD_ARGUMENTS
    return ExitCode.VALID


def _complete(instruction: str) -> int:
    """Carries out an instruction of a shell's completion, e.g. `bash_source`."""
    from click.shell_completion import FishComplete, add_completion_class, shell_complete

    class Fish(FishComplete):
        # A completed word may have commas, e.g. `kill,pause`, and click's script cuts it at the first one.
        source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')

    add_completion_class(Fish)
    if shell_complete(labrys, {}, "labrys", COMPLETION, instruction):
        raise InputError(f"{COMPLETION}: expected e.g. bash_source, zsh_source or fish_source, found {instruction!r}")
    return ExitCode.VALID


def main(arguments: list[str] | None = None) -> None:
    """Carries out a command line, and ends the process with its exit code."""
    process.end_with(lambda: invoke(sys.argv[1:] if arguments is None else arguments))
