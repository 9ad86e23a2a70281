"""What `labrys bisect` searches: the releases of the library, and its mends."""

from __future__ import annotations

import pytest

from commands.bisect.values import axis_of
from harness.errors import InputError
from tests.trials import settled_by


def test_what_is_searched_comes_from_the_declarations_of_options() -> None:
    """The releases are in their order, also backwards; and each mend is added to those before it."""
    with settled_by("--cluster", "sim", "--system", "dledger-log", "--workload", "set", "--seed", "1") as settled:
        axis = axis_of(settled, None, (), "0.3.1.2", None)
        assert [point.changes for point in axis.points] == [
            {"library_version": "0.3.1.2"},
            {"library_version": "0.4.0"},
        ]
        assert (axis.flag, axis.backwards) == ("--library-version", False)
        assert axis_of(settled, None, (), "0.4.0", "0.3.1.2").backwards
        mends = axis_of(settled, "mends", (), None, None)
        counts = [len(str(point.changes.get("mend", "")).split(",")) for point in mends.points[:-1]]
        assert counts == list(range(len(counts), 0, -1))
        assert len(counts) > 10
        assert mends.points[-1].changes == {}
        for arguments, error in (
            ((None, (), None, None), "give --good RELEASE"),
            ((None, (), "9.9", None), "expected one of 0.3.1.2, 0.4.0"),
            ((None, (), "0.4.0", "0.4.0"), "expected two values"),
            (("store", (), None, None), "an option of the system or of the workload"),
            (("log-read", (), None, None), "has no list of releases"),
            (("log-read", ("get", "x"), None, None), "--value x of --log-read"),
            (("log-read", ("get", "get"), None, None), "each value once"),
            (("mends", (), "1", None), "leave out --good"),
        ):
            with pytest.raises(InputError, match=error):
                axis_of(settled, *arguments)
