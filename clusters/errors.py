"""Errors of clusters."""

from __future__ import annotations

from harness.errors import InfrastructureError, InputError


class ClusterExists(InputError):  # noqa: N818 - a state, and named so in messages
    """A cluster of this name exists already."""


class NoSuchCluster(InputError):  # noqa: N818 - a state, and named so in messages
    """There is no cluster of this name."""


class ClusterInUse(InputError):  # noqa: N818 - a state, and named so in messages
    """Another test uses the cluster."""


class ClusterError(InfrastructureError):
    """A cluster could not be made, reached or taken down."""
