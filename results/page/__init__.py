"""Pages and pictures: the report, the timeline, plots and comparisons."""
