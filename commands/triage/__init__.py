"""Puts the runs of stores into groups by their causes."""
