"""The board: nodes, queue, feed and run bar."""
