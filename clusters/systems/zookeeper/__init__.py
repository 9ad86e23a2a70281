"""ZooKeeper as a system under test."""
