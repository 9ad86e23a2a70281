"""Commits as what a bisection searches: each is built by a command of the user, and an option of the system gets the result."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commands.bisect.values import MENDS, Axis, Point, converted, option_of
from commands.replay.command import PROGRAM
from harness.builds import TIMEOUT_S
from harness.commits import SHOWN_DIGITS, CommitBuild, commits_between
from harness.console.parameters import existing_folder
from harness.console.plain import name as plain_name
from harness.declare import option
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commands.options.compose import Settled

PLACE: Final = "{}"  # stands for the path of the product in the value of the option
NEWEST: Final = "HEAD"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """The commits of a repository, and how they are built."""

    repository: Path | None = option(
        None,
        "Search the commits of this git repository, from --good to --bad (HEAD).",
        flag="--commits",
        kind=existing_folder(),
        metavar="FOLDER",
    )
    build: str = option("", "Builds a commit in a clone, e.g. 'make server'.", metavar="COMMAND")
    product: str = option(
        "",
        f"The file or folder that it makes; the option of --over gets its path, or --value with the path for {PLACE}.",
        metavar="PATH",
    )
    build_timeout: float = option(TIMEOUT_S, "The time limit of a build in seconds.", low=0, high=86_400, above=True)

    def __post_init__(self) -> None:
        if self.repository is None and (self.build or self.product):
            raise InputError("--build and --product need --commits, the repository whose commits are built")


def axis_of_commits(
    settled: Settled,
    options: CommitOptions,
    over: str | None,
    values: Sequence[str],
    *,
    good: str | None,
    bad: str | None,
    say: Callable[[str], object],
) -> Axis:
    """Returns commits as what is searched.

    Args:
        settled: The run.
        options: The repository and the build.
        over: The long name of the option that gets the product of a build.
        values: At most one: the value of the option, with `{}` for the path of the product.
        good: The good end.
        bad: The bad end; None: the newest commit.
        say: Is called with sentences about builds.

    Raises:
        InputError: An option is missing or not valid, or the ends are no two commits of one history.
    """
    repository = options.repository
    if repository is None or good is None or over in {None, MENDS} or not options.build or not options.product:
        raise InputError(
            "--commits needs --good COMMIT, --build COMMAND, --product PATH, and --over OPTION of the system"
        )
    if Path(options.product).is_absolute() or ".." in Path(options.product).parts:
        raise InputError(f"--product {plain_name(options.product)}: expected a path in the clone, e.g. target/server")
    template = values[0] if values else PLACE
    if len(values) > 1 or PLACE not in template:
        raise InputError(
            f"--value: expected one value with {PLACE} for the path of the product, e.g. 'java -jar {PLACE}'"
        )
    try:
        command = shlex.split(options.build)
    except ValueError as error:
        raise InputError(f"--build {plain_name(options.build)} is not a command of a shell: {error}") from error
    changed = option_of(settled, over, {})
    commits, forwards = commits_between(repository, good, NEWEST if bad is None else bad)
    points = [Point(name=commit.name, changes={}) for commit in commits]
    by_name = {commit.name: commit for commit in commits}
    paths: dict[str, Path] = {}

    def changes_of(point: Point) -> Mapping[str, Any]:
        if point.name not in paths:
            commit = by_name[point.name]
            artifact = CommitBuild(
                name=f"commit-{_NOT_IN_NAMES.sub('-', repository.resolve().name.lower())}",
                version=commit.id[:SHOWN_DIGITS],
                sources=repository,
                command=command,
                product=options.product,
                timeout_s=options.build_timeout,
                commit=commit,
            ).artifact(say)
            file = artifact.path / Path(options.product).name
            paths[point.name] = file if file.is_file() else artifact.path
        path = str(paths[point.name])
        text = template.replace(PLACE, shlex.quote(path) if changed.name == PROGRAM else path)
        return {str(changed.name): converted(changed, text)}

    return Axis(
        flag=changed.opts[0],
        points=points if forwards else points[::-1],
        backwards=not forwards,
        noun="commit",
        build=[options.build, options.product, template],
        changes_of=changes_of,
    )
