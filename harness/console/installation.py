"""How this Labrys was installed, and how to install the same one into another environment.

pip writes down where a package comes from that is from no index: `direct_url.json`, as specified in PEP 610.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.errors import InputError

PACKAGE = "labrys"
RECORD = "direct_url.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The place from which pip installed Labrys.

    Attributes:
        words: What follows `pip install` to install it again, e.g. `-e`, `/home/ada/labrys`.
        gone: The path of a wheel or a clone that is no longer there; None if it is, or if it is no path.
    """

    words: tuple[str, ...]
    gone: str | None = None


def origin() -> Origin:
    """Reads the origin from the metadata of the package."""
    package = metadata.distribution(PACKAGE)
    return parse(package.read_text(RECORD), package.version)


def parse(record: str | None, version: str) -> Origin:
    """Returns the origin from the text of `direct_url.json`, or from the version if there is none."""
    if record is None:  # from an index
        return Origin(words=(f"{PACKAGE}=={version}",))
    known: dict[str, Any] = json.loads(record)
    url = str(known["url"])
    if "vcs_info" in known:
        return Origin(words=(f"{known['vcs_info']['vcs']}+{url}@{known['vcs_info']['commit_id']}",))
    parts = urlsplit(url)
    if parts.scheme != "file":
        return Origin(words=(f"{PACKAGE} @ {url}",))
    from urllib.request import url2pathname  # noqa: PLC0415 - it brings HTTP and TLS, and few commands need it

    path = url2pathname(parts.path)
    is_editable = known.get("dir_info", {}).get("editable", False)
    return Origin(words=("-e", path) if is_editable else (path,), gone=None if Path(path).exists() else path)


def pip() -> str:
    """Returns the command that installs packages beside this Labrys, for a shell, without their names."""
    if importlib.util.find_spec("pip") is None:  # an environment that was made without it
        return shlex.join(["pip", "--python", sys.executable, "install"])
    return shlex.join([sys.executable, "-m", "pip", "install"])


def labrys() -> str:
    """Returns the command of this Labrys for a shell: the one beside its Python, or the one in PATH if there is none."""
    beside = Path(sys.executable).with_name(PACKAGE)
    return shlex.quote(str(beside)) if beside.is_file() else PACKAGE


def is_installed(module: str) -> bool:
    """Returns whether a library is installed, without importing it."""
    return importlib.util.find_spec(module) is not None


def command_for(extra: str) -> str:
    """Returns the command that installs the libraries of an extra of Labrys."""
    return f"pip install '{PACKAGE}[{extra}]'"


def require(module: str, *, extra: str) -> None:
    """Checks that a library is installed which only an extra of Labrys brings.

    Args:
        module: The name of the library's module.
        extra: The name of the extra.

    Raises:
        InputError: It is not installed.
    """
    if not is_installed(module):
        raise InputError(f"expected the library {module}, which is not installed; `{command_for(extra)}` installs it")
