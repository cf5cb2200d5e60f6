"""Everything that writes scenarios. Keyword arguments only; refusals are `clusters.errors`."""
