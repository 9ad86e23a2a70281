"""Nodes on this machine. Each node is a set of namespaces, and Labrys reaches it over SSH like another machine."""

from clusters.local.cluster import LocalCluster, list_clusters, take_down

__all__ = ["LocalCluster", "list_clusters", "take_down"]
