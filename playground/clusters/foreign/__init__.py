"""Decisions of other schedulers, and how far they agree with ours."""
