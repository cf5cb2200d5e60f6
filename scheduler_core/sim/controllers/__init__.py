"""Controllers of the simulated cluster: a file each, or one for a family."""
