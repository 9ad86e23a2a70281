"""The `labrys` command: parses, composes a test from the rooms, prints, and sets the exit code.

Only click and the standard library are imported here at the top; a command's own imports happen when it is asked for, so
that `labrys --help` and `labrys check` on a small file start at once. Verdicts and machine output go to standard output,
everything else to standard error. Exit codes: 0 valid, 1 invalid, 2 unknown, 254 bad arguments, 255 an error of the tool or
of the machines, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from harness.config import as_defaults, load_config
from harness.errors import ExitCode, LabrysError

COMMANDS = {
    "check": "checker.command:check",
    "cluster": "clusters.command:cluster",
    "doctor": "clusters.command:doctor",
    "report": "results.command:report",
    "serve": "results.command:serve",
}
CONFIG_FILE = "labrys.toml"
CONFIG_VARIABLE = "LABRYS_CONFIG"
ENVIRONMENT_PREFIX = "LABRYS"


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for, with defaults from `labrys.toml`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command; None if there is none of this name."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            command = super().get_command(ctx, cmd_name)
        else:
            module, _, attribute = place.partition(":")
            command = getattr(importlib.import_module(module), attribute)
        if command is not None and not ctx.resilient_parsing:
            _apply_config(ctx, command, cmd_name)
        return command


def _apply_config(ctx: click.Context, command: click.Command, name: str) -> None:
    path: Path | None = ctx.params.get("config")
    table = load_config(path).get(name, {}) if path is not None else {}
    if table:
        options = {
            option.name: option.multiple
            for option in command.params
            if isinstance(option, click.Option) and option.name is not None
        }
        ctx.default_map = {name: as_defaults(Path(path or CONFIG_FILE), name, table, options)}


def _config_file(_ctx: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    return value or (Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None)


@click.group(
    cls=LazyGroup,
    context_settings={"auto_envvar_prefix": ENVIRONMENT_PREFIX, "help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 valid, 1 invalid, 2 unknown, 254 bad arguments, 255 error of the tool, 130 interrupted.",
)
@click.version_option(package_name="labrys")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_config_file,
    is_eager=True,
    help=f"Defaults for options, a table for each command.  [default: {CONFIG_FILE}, if there is one]",
)
def labrys(config: Path | None) -> None:
    """Finds consistency bugs in replicated systems.

    Drives a cluster of real nodes with concurrent clients, breaks it while they work, records every operation, and decides
    whether the history is linearizable.
    """


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line, and ends the process with the exit code that says how it went."""
    try:
        code: Any = labrys.main(args=arguments, prog_name="labrys", standalone_mode=False)
    except click.exceptions.Abort:
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = ExitCode.BAD_ARGUMENTS
    except LabrysError as error:
        click.echo(f"labrys: {error}", err=True)
        for note in getattr(error, "__notes__", ()):
            click.echo(f"  {note}", err=True)
        code = error.exit_code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; point it elsewhere, so that the interpreter's last flush does not fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.INTERNAL
    sys.exit(int(code or 0))


if __name__ == "__main__":
    main()
