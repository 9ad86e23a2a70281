"""Actors in a simulated world: the effects of the kinds of faults."""
