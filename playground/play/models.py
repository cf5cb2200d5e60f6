"""No rows of its own: `clusters.models.LanePulse` says when lanes were last seen to work."""
