"""What a run leaves behind: the store, results, reports and plots."""
