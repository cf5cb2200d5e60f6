"""Scheduling in other people's tests: the pytest plugin. README.md shows it."""
