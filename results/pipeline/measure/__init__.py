"""Measures: what happened over time in each run, and how runs compare with those before them."""
