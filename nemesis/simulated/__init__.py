"""The effects of the kinds of faults in a simulated world."""
