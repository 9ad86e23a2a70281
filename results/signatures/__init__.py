"""Makes the signatures of runs that are not as expected."""
