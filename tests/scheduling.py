"""Which process runs which tests, where `make test` runs them in several.

Real nodes are started by one process only, one cluster after the other, because what they do is timed. Spark is started by
one only, because it takes seconds and all processors. All other tests go by their file, those in `UNTIMED` too: they start
programs in virtual time or a browser, and no real nodes, but for one test of the night. Real nodes mostly wait, and meanwhile
these tests use the processors.

A process may die: a test crashes it, or runs for too long (`tests.watching`). Then another process runs the tests that it has
not begun. The class of xdist gives it the finished tests as well, and the test that killed the first one. A process with a list
without tests waits for ever, and so does the run.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

TESTS = "tests"
REAL, SPARK, OTHERS = "integration", "spark", "others"
UNTIMED = ("linux", "jvm", "results")  # folders below an `integration`
# What takes longest begins first, so that no process is left with it at the end.
ORDER = (REAL, SPARK, *UNTIMED, OTHERS)
# A process begins a test when it knows the next one. So it needs two, or the word that there are no more.
ENOUGH = 2


def group_of(nodeid: str) -> str:
    """Returns the group of `ORDER` that a test belongs to: by the folders below `tests`, that of Labrys or of a system."""
    folders = nodeid.partition("::")[0].split("/")[:-1]
    folder, *below = (*folders[folders.index(TESTS) + 1 :], "", "") if TESTS in folders else ("", "")
    if folder == REAL and below[0] in UNTIMED:
        return below[0]
    return folder if folder in {REAL, SPARK} else OTHERS


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # the library has no types
    """Gives out the tests on real nodes and those of Spark as one piece each, and all other tests by file."""

    workqueue: OrderedDict[str, dict[str, bool]]
    assigned_work: dict[WorkerController, dict[str, dict[str, bool]]]

    def _split_scope(self, nodeid: str) -> str:
        group = group_of(nodeid)
        return group if group in {REAL, SPARK} else nodeid.partition("::")[0]

    def remove_node(self, node: WorkerController) -> str | None:
        """Takes a process out, and gives the tests that it has not begun to others.

        Returns:
            The test that ran when the process died; None if no test was left.
        """
        tests = [
            (scope, nodeid)
            for scope, tests_of_scope in self.assigned_work.pop(node).items()
            for nodeid, is_done in tests_of_scope.items()
            if not is_done
        ]
        if not tests:
            return None
        again: OrderedDict[str, dict[str, bool]] = OrderedDict()
        for scope, nodeid in tests[1:]:  # the first one has failed, and would kill the next process too
            again.setdefault(scope, {})[nodeid] = False
        again.update(self.workqueue)
        self.workqueue = again
        for other in self.nodes:
            self._reschedule(other)
        return tests[0][1]

    def _reschedule(self, node: WorkerController) -> None:
        """Gives a process tests until it has enough, or says that there are no more."""
        if node not in self.registered_collections:  # it replaces another one, and does not know its tests yet
            return
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= ENOUGH:
            if not self.workqueue:
                node.shutdown()
            else:
                self._assign_work_unit(node)
