"""CEL expressions: read, bounded and run, with Kubernetes' functions. The language itself is a library's."""
