"""The words of the engine, for those who keep only columns of what it did."""

from scheduler_core.framework.words import Told, headline, placed, sentence

__all__ = ["Told", "headline", "placed", "sentence"]
