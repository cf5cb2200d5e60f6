"""The worker's side: whose turn it is, the lease, driving an engine, committing its batches."""
