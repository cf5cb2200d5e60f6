"""Objects of the Kubernetes API in a cluster: admit, apply, change, delete and find them."""
