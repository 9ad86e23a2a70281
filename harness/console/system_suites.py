"""The suites of systems by their names, for `labrys suite NAME`.

They are files in the folder `suites` beside the module of the system, in Labrys or in another package, installed or in a clone.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Final

from harness.console import plugins
from harness.console.plain import name as plain_name
from harness.console.suggest import nearest
from harness.console.terminal import near as near_path
from harness.errors import InputError

FOLDER: Final = "suites"
SUFFIX: Final = ".toml"


def is_name(text: str) -> bool:
    """Returns whether a text can be the name of a suite. Any other text is a path, and so is the name of a file that exists."""
    return bool(text) and "/" not in text and not text.endswith(SUFFIX) and not os.path.lexists(text)


def suites() -> dict[str, tuple[Path, ...]]:
    """Returns the files of the suites of all installed systems by name, in order; several files if systems share a name."""
    folders = dict.fromkeys(map(_folder, plugins.plugins(plugins.SYSTEMS).values()))
    files = sorted(file for folder in folders if folder is not None for file in folder.glob(f"*{SUFFIX}"))
    return {name: tuple(file for file in files if file.stem == name) for name in sorted({file.stem for file in files})}


def suite_named(name: str) -> Path:
    """Returns the file of a suite, relative to the working folder if it is there.

    Raises:
        InputError: No system has a suite of this name, or several have.
    """
    known = suites()
    if name not in known:
        near = nearest(name, known)
        advice = f"Did you mean {near!r}? " if near else ""
        raise InputError(
            f"expected a file, a folder or the name of a suite, and found {plain_name(name)}. {advice}"
            f"The suites of the installed systems are {', '.join(known)}"
        )
    if len(known[name]) > 1:
        files = " and ".join(plain_name(str(file)) for file in known[name])
        raise InputError(f"several systems have a suite named {name}: {files}; give the path of one")
    (file,) = known[name]
    return near_path(file)


def _folder(system: plugins.Plugin) -> Path | None:
    """Returns the folder of a system's suites; None if the system is no module of a package, or its package cannot be imported.

    A broken package affects no other one: a test of its system says what is wrong with it.
    """
    module, _ = plugins.split_place(system.place)
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # noqa: BLE001 - the package runs its own code here
        return None
    is_in_package = spec is not None and spec.origin is not None and bool(spec.parent)
    return Path(str(spec.origin)).parent / FOLDER if spec is not None and is_in_package else None
