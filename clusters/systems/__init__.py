"""Systems under test, one folder each. Code outside a system's folder knows nothing about the system."""
