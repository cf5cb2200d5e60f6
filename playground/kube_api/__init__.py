"""The Kubernetes API of each cluster under /k8s/{id}, over the one table of kinds. See README.md."""
