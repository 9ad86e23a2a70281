"""Which process runs which tests, where `make test` runs them in several.

Real nodes are started by one process only, one cluster after the other, because what they do is timed. Spark is started by
one only, because it takes seconds and all processors. All other tests go by their file.

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

# What takes longest begins first, so that no process is left with it at the end.
FIRST = ("integration", "spark")
# A process begins a test when it knows the next one. So it needs two, or the word that there are no more.
ENOUGH = 2


def folder_of(nodeid: str) -> str:
    """Returns the folder of a test below `tests`."""
    parts = nodeid.split("/")
    return parts[1] if len(parts) > 1 else ""


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # the library has no types
    """Gives out `integration` and `spark` as one piece each, and all other tests by file."""

    workqueue: OrderedDict[str, dict[str, bool]]
    assigned_work: dict[WorkerController, dict[str, dict[str, bool]]]

    def _split_scope(self, nodeid: str) -> str:
        folder = folder_of(nodeid)
        return folder if folder in FIRST else nodeid.partition("::")[0]

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
