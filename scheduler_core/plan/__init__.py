"""Questions about a cluster, answered by runs of its scheduler on a copy that is left as it was."""
