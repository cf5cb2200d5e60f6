"""The web playground around scheduler_core."""
