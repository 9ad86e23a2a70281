"""What the kinds of faults do in a simulated world."""
