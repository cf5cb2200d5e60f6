"""The adapter: engines over `scheduler_core`. Knows neither Django models nor Celery. See README.md."""
