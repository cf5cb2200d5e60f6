"""Clusters: their rows, their log, the services that write and the selectors that read. See README.md."""
