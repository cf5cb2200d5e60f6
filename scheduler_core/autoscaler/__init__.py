"""The cluster autoscaler: whole loops, which group grows and why the others do not."""
