"""Running the playground: `manage.py play`, the worker's heartbeat, health answers."""
