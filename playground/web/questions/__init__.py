"""Questions: about decisions, and about a whole cluster."""
