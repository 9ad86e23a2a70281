"""Redis with sentinels as a system under test."""
