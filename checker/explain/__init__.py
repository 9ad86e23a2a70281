"""Reasons for a verdict: small counterexamples, contradictions, and sentences."""
