"""What would happen if: questions about a cluster, asked of a fork of it. See README.md."""
