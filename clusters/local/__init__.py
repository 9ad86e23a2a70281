"""Nodes on this machine: a set of namespaces each, reached over SSH as if they were other machines."""

from clusters.local.cluster import LocalCluster, list_clusters, take_down

__all__ = ["LocalCluster", "list_clusters", "take_down"]
