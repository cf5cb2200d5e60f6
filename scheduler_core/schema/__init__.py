"""Every kind of the Kubernetes API and the fields of each, as data; see README.md."""
