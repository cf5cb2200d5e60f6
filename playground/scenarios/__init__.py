"""Scenarios: shared, replayed, proved, compared."""
