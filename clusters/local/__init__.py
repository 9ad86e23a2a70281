"""Nodes on this machine: a set of namespaces each, reached over SSH as if they were other machines."""

from clusters.local.cluster import LocalCluster, list_clusters

__all__ = ["LocalCluster", "list_clusters"]
