"""The 'Known differences' of the engine's README, as paragraphs and points a page can show."""

from playground.engine.differences import known_differences

__all__ = ["known_differences"]
