"""Cycles: found, opened up, what comes after a preemption, and the devices a cycle looked at."""
