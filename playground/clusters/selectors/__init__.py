"""Reads. Each file answers for one page or surface; none writes."""
