"""Clusters: made, imported into, compared with their parents, reset and deleted."""
