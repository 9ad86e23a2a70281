"""What the options of a run mean: its system, its workload, its faults, and the test that they make."""
