"""The option `--mend` of the log: an older library has fewer mends."""

from __future__ import annotations

import pytest

from clusters.systems.dledger_log.options import DLedgerLogOptions
from harness.errors import InputError


def test_an_older_library_has_fewer_mends() -> None:
    """A mend is for the versions that have its finding."""
    assert DLedgerLogOptions(library_version="0.3.1.2", mend="8,17,18,19,20").mend
    with pytest.raises(InputError, match="one of 8, 17, 18, 19, 20, or all"):
        DLedgerLogOptions(library_version="0.3.1.2", mend="1")
