"""`labrys bisect`: searches for the release, the value or the mend with which a run changes from good to bad."""
