"""The log of a cluster and the rows that are its fold: writing, changes, quotas, housekeeping."""
