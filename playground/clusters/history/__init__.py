"""What has happened: cycles, queue, stories of pods, cycles decided again, undo."""
