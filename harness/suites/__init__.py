"""Suites as data: their cases, the expectation of each case, thresholds, and proportions over many runs."""
