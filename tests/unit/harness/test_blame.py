"""Errors in the code of a user's system are sentences with function, file and line, and `sys.exit` there ends nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from harness.blame import Blamable, CalledExit, blaming, without_exit
from harness.cluster import on_nodes
from harness.console import own
from harness.errors import ExitCode, InputError, PluginError
from harness.node import Node

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

FILE = """
import sys

class Fails:
    def install(self):
        raise {error}

    def ends(self):
        sys.exit(0)
"""


def made(tmp_path: Path, error: str = "ValueError('no disk \\x1b[31m\\ud800')") -> Any:
    """Returns an object of a class in a file that the user names."""
    file = tmp_path / "fails.py"
    file.write_text(FILE.format(error=error))
    return own.module_of(file).Fails()


def test_an_exception_of_a_plug_in_is_a_sentence_with_its_place(tmp_path: Path) -> None:
    """The text of the exception is safe for a terminal, and short."""
    fails = made(tmp_path)
    with pytest.raises(PluginError) as raised, blaming(Blamable(type(fails), "system fails")):
        fails.install()
    location = f"{tmp_path / 'fails.py'}:6"
    assert str(raised.value).startswith(f"system fails: install ({location}) failed: ValueError: no disk ")
    assert str(raised.value).endswith("; correct the system")
    assert str(raised.value).isprintable()
    assert raised.value.exit_code is ExitCode.INTERNAL


def test_an_error_on_purpose_stays_as_it_is(tmp_path: Path) -> None:
    """A system says what is wrong by an error of Labrys."""
    fails = made(tmp_path, "__import__('harness.errors').errors.InputError('no java')")
    with pytest.raises(InputError, match="no java"), blaming(Blamable(type(fails), "system fails")):
        fails.install()


def test_an_error_of_labrys_blames_nobody(tmp_path: Path) -> None:
    """It is a bug, and its traceback shows where."""
    fails = made(tmp_path)
    with pytest.raises(ZeroDivisionError), blaming(Blamable(type(fails), "system fails")):
        raise ZeroDivisionError


def test_an_exit_on_a_node_is_the_result_of_the_node(tmp_path: Path) -> None:
    """It would end Labrys with the exit code of the system, and 0 would be a verdict."""
    fails = made(tmp_path)
    result = on_nodes([Node(name="n1", address="x")], lambda _: fails.ends())["n1"]
    assert isinstance(result, CalledExit)
    said = r"ends \(.*fails.py:9\) failed: it called sys.exit\(0\)"
    with pytest.raises(PluginError, match=said), blaming(Blamable(type(fails), "system fails")):
        raise result


def test_an_exit_in_a_task_does_not_end_the_loop() -> None:
    """A task that raises SystemExit would end the event loop at once, and nothing would be healed."""

    async def ends() -> None:
        sys.exit(0)

    async def main() -> object:
        (result,) = await asyncio.gather(without_exit(ends()), return_exceptions=True)
        return result

    assert isinstance(asyncio.run(main()), CalledExit)
