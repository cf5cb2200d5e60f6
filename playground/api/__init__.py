"""The playground's own REST API under /api/v1. See README.md."""
