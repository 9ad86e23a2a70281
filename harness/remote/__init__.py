"""Remote shells: the control plane of a run (set-up, faults, logs). Never the path of a client's operation."""

from harness.remote.protocol import Remote, Result

__all__ = ["Remote", "Result"]
