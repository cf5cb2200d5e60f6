"""The descheduler: which bound pods it evicts, in which order, and why it leaves the others."""
