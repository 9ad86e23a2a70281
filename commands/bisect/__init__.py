"""`labrys bisect`: searches for the release, the value, the commit or the mend with which a run changes from good to bad."""
