"""The numbers of a run, from its history: availability, outcomes, leaders, series, and measures."""
