"""Tests kv-store with Labrys."""
