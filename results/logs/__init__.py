"""Lines of logs and transcripts of a run, in the order of its clock."""
