"""Objects of every kind, the load of workloads, changes and their undo."""
