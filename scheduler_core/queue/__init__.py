"""The scheduling queue: pods waiting for their turn, for time to pass, or for the cluster to change."""
