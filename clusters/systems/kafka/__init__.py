"""Kafka as a system under test."""
