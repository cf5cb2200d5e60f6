"""The playground's own extenders."""
