"""Makes an invalid run smaller, and keeps it as a regression."""
