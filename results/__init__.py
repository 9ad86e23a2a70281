"""Everything about finished and running runs: the store, results, reports and plots."""
