"""Remote shells: the control plane of a run (set-up, faults, logs). Clients never use them for operations."""

from harness.remote.protocol import Channel, Remote, Result

__all__ = ["Channel", "Remote", "Result"]
