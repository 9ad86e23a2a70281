"""The option `--mend` of the log: an older library has fewer mends."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from clusters.systems.dledger_log.options import DLedgerLogOptions
from harness.errors import InputError
from harness.option_values import patch_of

PATCHES = Path(__file__).parents[3] / "dledger" / "patches"


def test_an_older_library_has_fewer_mends() -> None:
    """A mend is for the versions that have its finding."""
    assert DLedgerLogOptions(library_version="0.3.1.2", mend="8,17,18,19,20,22,23").mend
    with pytest.raises(InputError, match="one of 8, 17, 18, 19, 20, 22, 23, or all"):
        DLedgerLogOptions(library_version="0.3.1.2", mend="1")


@pytest.mark.parametrize("version", ["0.4.0", "0.3.1.2"])
def test_a_patch_is_that_of_the_version(version: Literal["0.4.0", "0.3.1.2"]) -> None:
    """The same finding has another patch in another release."""
    patch = patch_of(DLedgerLogOptions(library_version=version), "--mend 8")
    assert patch == (PATCHES / version / "8.patch").read_text(encoding="utf-8")
