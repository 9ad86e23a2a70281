"""Systems under test, one folder each. Nothing about a system is known outside its folder."""
