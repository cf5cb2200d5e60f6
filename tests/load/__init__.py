"""Measurements of the running pipeline, by command and never in the suite: `python -m tests.load --help`."""
