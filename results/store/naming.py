"""The names of runs on the command line: a folder, a name in the store, or an index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.console.sources import DefaultsCommand

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAX_COMPLETIONS = 200
_NEGATIVE = re.compile(r"-\d{1,9}")


class RunCommand(DefaultsCommand):
    """A command whose argument is a run. A negative index, such as `-1`, is an argument and not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line."""
        indexes = [] if "--" in args else [word for word in args if _NEGATIVE.fullmatch(word)]
        if indexes:
            args = [*(word for word in args if word not in indexes), "--", *indexes]
        return super().parse_args(ctx, args)


class RunName(click.ParamType[str]):
    """The name of a run; a shell completes the runs in the store."""

    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Returns the runs in the store whose names begin with `incomplete`, newest first; folders if there are none."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        from results.store.store import Store  # noqa: PLC0415

        root = Path(ctx.params.get("store") or ctx.params.get("store_dir") or "store")
        runs = Store(root).runs()
        names = [
            "latest",
            *dict.fromkeys(run.test_name for run in runs),
            *(f"{run.test_name}/{run.stamp}" for run in runs),
        ]
        completions = [CompletionItem(name) for name in names if name.startswith(incomplete)][:MAX_COMPLETIONS]
        return completions or click.Path().shell_complete(ctx, param, incomplete)
