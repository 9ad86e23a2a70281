"""The numbers of a run: availability, leaders, series, circumstances, and lines of logs."""
