"""etcd as a system under test."""
