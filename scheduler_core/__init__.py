"""A deterministic re-implementation of kube-scheduler v1.34 in columns."""
