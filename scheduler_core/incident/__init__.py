"""What a live scheduler did, from the audit logs of its API servers: each decision beside ours."""
